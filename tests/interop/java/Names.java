import java.io.FileInputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;

/** The subjects of certificates, as Kafka gets them for its principals; one line for each file. */
public final class Names {
    private Names() {}

    public static void main(String[] files) throws Exception {
        CertificateFactory factory = CertificateFactory.getInstance("X.509");
        PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String file : files) {
            try (InputStream input = new FileInputStream(file)) {
                X509Certificate certificate = (X509Certificate) factory.generateCertificate(input);
                output.println(certificate.getSubjectX500Principal().getName());
            }
        }
    }
}

import java.io.IOException;

/** Formats a broker's folder unless that was done before, and runs the broker until the input ends. */
public final class Broker {
    public static void main(String[] arguments) {
        Thread watch = new Thread(Broker::endWithInput, "end-with-input");
        watch.setDaemon(true);
        watch.start();
        String[] format = {"format", "--ignore-formatted", "--cluster-id", arguments[1], "--config", arguments[0]};
        int status = kafka.tools.StorageTool.execute(format, System.out);
        if (status != 0) {
            System.exit(status);
        }
        kafka.Kafka.main(new String[] {arguments[0]});
    }

    /** Whoever started this is gone, perhaps killed: nobody will stop it. */
    private static void endWithInput() {
        try {
            while (System.in.read() >= 0) {
            }
        } catch (IOException error) {
            // The input is as good as ended.
        }
        Runtime.getRuntime().halt(1);
    }
}

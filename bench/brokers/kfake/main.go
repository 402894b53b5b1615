// One broker of franz-go's kfake, with its data in a folder, on a port of its caller's choice.
package main

import (
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	port := flag.Int("port", 0, "where to listen on loopback")
	folder := flag.String("data", "", "where records are kept")
	flag.Parse()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(*port), kfake.DataDir(*folder))
	if err != nil {
		log.Fatal(err)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	<-stop
	cluster.Close()
}

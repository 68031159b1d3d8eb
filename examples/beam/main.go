// Beam makes a dataset by an Apache Beam pipeline: numbers of parts go through it, and each
// worker makes the parts that it gets by preprocess --rank. Samples and records do not, so it
// costs next to nothing, on any runner.
//
//	beam --parts 64 SOURCE DEST [flags of preprocess]
//	beam --parts 64 --runner flink --endpoint jobs:8099 --environment_type DOCKER ... s3://lab/photos s3://lab/ds --resize 256
//
// Flags of Beam come before SOURCE. Without --runner the pipeline runs on Prism, in this process.
// Each worker needs the command preprocess, on its PATH or at --preprocess. The parts are merged
// on this machine when all of them are complete.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx"
)

func main() {
	program := flag.String("preprocess", "preprocess",
		"`path` of the command preprocess on the workers and on this machine")
	parts := flag.Int("parts", 0, "`number` of parts that the dataset is made in")
	flag.Usage = usage
	flag.Parse()
	beam.Init() // on a worker it does not return
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if flag.NArg() < 2 || *parts < 1 {
		usage()
		os.Exit(2)
	}
	if err := run(ctx, *program, *parts, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "beam:", err)
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: beam --parts N [flags of Beam] SOURCE DEST [flags of preprocess]")
	flag.PrintDefaults()
}

// run makes all parts with a pipeline, then merges them.
func run(ctx context.Context, program string, parts int, args []string) error {
	p, s := beam.NewPipelineWithRoot()
	beam.ParDo(s, &makePart{Program: program, Args: args, Parts: parts},
		beam.Reshuffle(s, beam.Create(s, ranks(parts)...)))
	if err := beamx.Run(ctx, p); err != nil {
		return err
	}
	return runPreprocess(ctx, program, os.Stdout, "merge", args[1])
}

// ranks returns the numbers of all parts.
func ranks(parts int) []any {
	list := make([]any, parts)
	for i := range list {
		list[i] = int64(i)
	}
	return list
}

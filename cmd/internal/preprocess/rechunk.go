package preprocess

import (
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/prepare/rechunk"
)

// withRechunk lists the flags that may be given together with --rechunk. All others change values
// or select records, and a rechunk copies arrays as they are.
var withRechunk = []string{"rechunk", "memory", "workers", "overwrite", "resume", "fields", "progress", "quiet", "json"}

// checkRechunk turns the flags into rechunk.Options, or returns all their problems.
func (f *flags) checkRechunk(args []string) error {
	usage := &cli.UsageError{Arguments: f.arguments(args)}
	var p problems
	f.set.Visit(func(flag *pflag.Flag) {
		if !slices.Contains(withRechunk, flag.Name) {
			p = append(p, "--"+flag.Name+" does not go with --rechunk, which keeps values as they are")
		}
	})
	var err error
	f.chunks.Chunks, err = cli.ParseAxes(f.rechunk)
	p.add("rechunk", f.rechunk, err)
	p.choose(f.set.Lookup("progress"))
	f.chunks.Workers, f.chunks.Overwrite, f.chunks.Resume = f.workers, f.config.Overwrite, f.config.Resume
	f.chunks.Memory = p.bytes("memory", f.memory)
	if strings.ContainsAny(f.config.Fields, "=:") {
		p = append(p, "--fields "+f.config.Fields+": with --rechunk, fields are names alone, such as t2m,z")
	} else if f.config.Fields != "" {
		f.chunks.Fields = strings.Split(f.config.Fields, ",")
	}
	usage.Problems = p
	if usage.Arguments == "" && len(p) == 0 {
		return nil
	}
	return usage
}

// runRechunk writes the arrays in chunks of another shape, and prints for each array how often its
// bytes were read: with too little memory, a source chunk is read for several of the new chunks.
func (f *flags) runRechunk(cmd *cobra.Command) error {
	plan, err := rechunk.NewPlan(cmd.Context(), f.config.Source, f.config.Dest, f.chunks)
	if err != nil {
		return err
	}
	total := int64(0)
	for _, a := range plan.Arrays {
		total += a.Bytes
	}
	if f.chunks.Memory > 0 {
		debug.SetMemoryLimit(f.chunks.Memory) // of the whole process, which does nothing else
	}
	bar := cli.ProgressOf(cmd, cmd.Name())
	bar.Begin("rechunk", total, "bytes")
	err = plan.Run(cmd.Context(), bar.Add)
	bar.End()
	if err != nil || cli.Quiet(cmd) && !cli.AsJSON(cmd) {
		return err
	}
	return cli.Print(cmd, plan, func(w io.Writer) error { return printRechunk(w, plan) })
}

// printRechunk prints a line for each array: its chunks before and after, how often its bytes were
// read, and the box of elements that was in memory at a time.
func printRechunk(w io.Writer, plan *rechunk.Plan) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", shell.Line(plan.Dest))
	t := cli.Table{Indent: 2}
	for _, a := range plan.Arrays {
		from := "not in chunks"
		if a.From != nil {
			from = fmt.Sprintf("chunks of %v", a.From)
		}
		t.Add(a.Name, fmt.Sprint(a.DType, a.Shape), from, fmt.Sprintf("to %v", a.Chunk),
			fmt.Sprintf("read %.2f times, %v at a time", float64(a.Reads)/float64(max(1, a.Bytes)), a.Box))
	}
	b.WriteString(t.String())
	_, err := io.WriteString(w, b.String())
	return err
}

// Many runs the command preprocess for each line of stdin, in one process. Tests prepare thousands
// of small sources, and starting a process for each would take longer than the work itself.
//
// A line is the JSON array of the arguments. The answer is a line of JSON with the exit code and
// what the command printed on stderr. Many ends at the end of stdin.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/penstock/penstock/cmd/internal/cli"
	"github.com/penstock/penstock/cmd/internal/preprocess"
)

// answer is the result of one command, as a line of JSON.
type answer struct {
	Code   int
	Stderr string
}

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "many:", err)
		os.Exit(1)
	}
}

// serve runs the commands of in, one after the other, and writes an answer for each to out. A
// command gets a new tree of flags, since flags keep their values after a run.
func serve(in io.Reader, out io.Writer) error {
	answers := json.NewEncoder(out)
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		var args []string
		if err == nil {
			err = json.Unmarshal(line, &args)
		}
		if err != nil {
			return err
		}
		var stderr bytes.Buffer
		code := cli.Run(preprocess.Command(), args, bytes.NewReader(nil), io.Discard, &stderr)
		if err := answers.Encode(answer{code, stderr.String()}); err != nil {
			return err
		}
	}
}

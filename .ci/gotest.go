//go:build ignore

// Command gotest runs go test with its arguments and prints what that prints, then every skipped test with its
// reason, which go test keeps to itself. No result is remembered: go does not see all that a test reads, such as the
// files of another module, programs and the network.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// event is a line of go test -json; see "go doc test2json".
type event struct{ Action, Package, Test, Output string }

// report collects the output of tests until it is known how they end.
type report struct {
	output  map[[2]string]string // by package and test
	skipped map[string][]string  // tests, by reason
}

func main() {
	r := report{make(map[[2]string]string), make(map[string][]string)}
	cmd := exec.Command("go", append([]string{"test", "-json", "-count=1"}, os.Args[1:]...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(1)
	}
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		var e event
		if json.Unmarshal([]byte(line), &e) == nil {
			r.add(e)
		} else {
			fmt.Print(line)
		}
		if err != nil {
			break
		}
	}
	err = cmd.Wait()
	r.printSkipped()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(1)
	}
}

func (r report) add(e event) {
	key := [2]string{e.Package, e.Test}
	switch {
	case e.Test == "" && e.Action == "fail": // what the tests have printed that never ended
		for k, text := range r.output {
			if k[0] == e.Package {
				fmt.Print(text)
			}
		}
	case e.Test == "" && e.Output != "PASS\n": // which the line that begins with ok says, too
		fmt.Print(e.Output)
	case e.Action == "output":
		r.output[key] += e.Output
	case e.Action == "fail":
		fmt.Print(r.output[key])
		delete(r.output, key)
	case e.Action == "skip":
		why := reason(r.output[key])
		r.skipped[why] = append(r.skipped[why], e.Package+"."+e.Test)
		delete(r.output, key)
	case e.Action == "pass":
		delete(r.output, key)
	}
}

// reason returns what a skipped test has said last.
func reason(output string) string {
	why := "no reason given"
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") && line != "" {
			why = line
		}
	}
	return why
}

func (r report) printSkipped() {
	for _, why := range slices.Sorted(maps.Keys(r.skipped)) {
		tests := r.skipped[why]
		more := ""
		if len(tests) > 1 {
			more = fmt.Sprintf(" and %d more", len(tests)-1)
		}
		fmt.Printf("SKIPPED %s%s: %s\n", tests[0], more, why)
	}
}

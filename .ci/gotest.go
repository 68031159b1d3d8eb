//go:build ignore

// Command gotest runs go test with its arguments and prints what that prints, and why tests were skipped, which go test
// keeps to itself: at the end, or where $SKIPS names a file, there, for several calls. "gotest skips FILE" prints those.
// No result is remembered: go does not see all that a test reads, such as the files of another module, programs and
// the network.
package main

import (
	"bufio"
	"cmp"
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
	if len(os.Args) == 3 && os.Args[1] == "skips" {
		skips(os.Args[2])
		return
	}
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

// printSkipped prints why tests were skipped, or adds it to the file of $SKIPS, a test a line.
func (r report) printSkipped() {
	path := os.Getenv("SKIPS")
	if path == "" {
		printSkips(r.skipped)
		return
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err == nil {
		for why, tests := range r.skipped {
			for _, test := range tests {
				fmt.Fprintf(file, "%s\t%s\n", test, why)
			}
		}
		err = file.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(1)
	}
}

// skips prints what a file of $SKIPS has.
func skips(path string) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(1)
	}
	skipped := make(map[string][]string)
	for line := range strings.Lines(string(data)) {
		test, why, _ := strings.Cut(strings.TrimSpace(line), "\t")
		skipped[why] = append(skipped[why], test)
	}
	printSkips(skipped)
}

// printSkips prints reasons, the commonest first, with a test of each.
func printSkips(skipped map[string][]string) {
	n := 0
	for _, tests := range skipped {
		n += len(tests)
	}
	if n == 0 {
		return
	}
	fmt.Printf("%d tests were skipped:\n", n)
	reasons := slices.SortedFunc(maps.Keys(skipped), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(skipped[b]), len(skipped[a])), cmp.Compare(a, b))
	})
	for _, why := range reasons {
		tests := skipped[why]
		fmt.Printf("%5d  %s (%s)\n", len(tests), why, strings.TrimPrefix(tests[0], "github.com/penstock/penstock/"))
	}
}

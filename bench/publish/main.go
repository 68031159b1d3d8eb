// Command publish writes what was measured into the pages that tell it: docs/benchmarks.md, docs/scale.md and
// README.md.
//
//	publish -results FOLDER PAGE...
//
// FOLDER holds a file for each program that measured, named for it (loader.txt). In a page, what
// stands between two comments is replaced:
//
//	<!-- table loader: two workers against one -->   the table of loader.txt whose first column has that head
//	<!-- rest loader -->                             the tables of loader.txt that have no place of their own
//	<!-- text loader -->                             what loader.txt says beside tables and benchmark lines
//	<!-- runs loadbench -->                          everything in loadbench-*.txt
//	<!-- targets -->                                 what is aimed at, and what was reached
//	<!-- ratios -->                                  the few figures of the README
//	<!-- end -->
//
// A place for what was not measured stays as it is, and the error says what is missing.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	results := flag.String("results", "out/bench/results", "folder of what was measured")
	flag.Parse()
	if err := run(*results, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "publish:", err)
		os.Exit(1)
	}
}

func run(folder string, pages []string) error {
	all, err := readResults(folder)
	if err != nil {
		return err
	}
	var errs []error
	for _, page := range pages {
		if err := update(page, all); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", page, err))
		}
	}
	return errors.Join(errs...)
}

// update fills the places of a page, and says which it could not.
func update(page string, all results) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	text, err := fill(string(old), all)
	return errors.Join(err, os.WriteFile(page, []byte(text), 0o644))
}

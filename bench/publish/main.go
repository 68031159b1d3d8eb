// Command publish writes what was measured into the pages that show it: docs/benchmarks.md and README.md.
//
//	publish [-results FOLDER] [-charts FOLDER] [-csv FILE] PAGE...
//
// FOLDER holds a file for each program that measured, named for it (loader.txt). In a page, what
// stands between two comments is replaced:
//
//	<!-- table loader: sequential, touch -->         the table of loader.txt whose first column has that head
//	<!-- rest loader -->                             the tables of loader.txt that have no place of their own
//	<!-- text loader -->                             the rest of loader.txt: neither tables nor benchmark lines
//	<!-- targets -->                                 what is aimed at, and what was reached
//	<!-- ratios -->                                  the few numbers of the README
//	<!-- end 5f3a0c21 -->                            with a checksum of the place: an edit by hand is an error
//
// A place for what was not measured stays as it is, and what that is of is printed; aims and ratios are then of
// what the pages say. -charts draws bars of the tables as SVG, and -csv writes all tables to one file. Without
// -results, aims and ratios are written from the tables of the pages.
package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	results := flag.String("results", "", "folder of what was measured")
	charts := flag.String("charts", "", "folder for the charts, as SVG")
	tables := flag.String("csv", "", "file for the tables, as CSV")
	flag.Parse()
	err := run(*results, flag.Args(), os.Stderr)
	if err == nil {
		err = derive(*charts, *tables, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "publish:", err)
		os.Exit(1)
	}
}

func run(folder string, pages []string, notes io.Writer) error {
	var all results
	if folder != "" {
		var err error
		if all, err = readResults(folder); err != nil {
			return err
		}
	}
	texts, known := make([]string, len(pages)), make(results)
	for i, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		texts[i] = string(text)
		maps.Copy(known, pageTables(texts[i]))
	}
	maps.Copy(known, all)
	missing := make(map[string]bool)
	var errs, byHand []error
	for i, page := range pages {
		var wrong []error
		texts[i], wrong = fill(texts[i], all, known)
		for _, err := range wrong {
			if name, ok := errors.AsType[notMeasured](err); ok {
				missing[string(name)] = true
			} else {
				errs = append(errs, fmt.Errorf("%s: %w", page, err))
			}
		}
		for _, err := range edited(texts[i]) {
			byHand = append(byHand, fmt.Errorf("%s: %w", page, err))
		}
	}
	if byHand != nil {
		return errors.Join(byHand...)
	}
	for i, page := range pages {
		errs = append(errs, os.WriteFile(page, []byte(texts[i]), 0o644))
	}
	if len(missing) > 0 {
		fmt.Fprintln(notes, "publish: not measured, so that what the pages say of it stays:",
			strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
	}
	return errors.Join(errs...)
}

// derive writes the charts and the CSV of the pages' current tables, if they are asked for.
func derive(charts, tables string, pages []string) error {
	known := make(results)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		maps.Copy(known, pageTables(string(text)))
	}
	if charts != "" {
		files, err := known.charts()
		if err != nil {
			return err
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(charts, name), []byte(text), 0o644); err != nil {
				return err
			}
		}
	}
	if tables == "" {
		return nil
	}
	return known.write(tables)
}

// write writes all tables, each below its program, to one file of CSV.
func (r results) write(path string) error {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	for _, program := range slices.Sorted(maps.Keys(r)) {
		for _, t := range r[program].tables {
			for _, row := range t.cells {
				if err := w.Write(append([]string{program}, row...)); err != nil {
					return err
				}
			}
		}
	}
	w.Flush()
	return os.WriteFile(path, b.Bytes(), 0o644)
}

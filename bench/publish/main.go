// Command publish writes what was measured into the pages that show it: docs/benchmarks.md, README.md and bench/AIMS.md.
//
//	publish [-results FOLDER] -csv FILE [-charts FOLDER] PAGE...
//
// The CSV file has all tables, and what the programs said of the machine: see results. FOLDER holds a file for each
// program that measured, named for it (loader.txt); its tables take the place of the program's tables in the CSV file.
// In a page, the text between two comments is replaced:
//
//	<!-- table loader: sequential, touch -->         the table of the program loader whose first column has that head
//	<!-- across loader-cold: GB/s; cold, 512 | cold, 4096 -->  one column of several tables, side by side
//	<!-- pivot hdf5: HDF5; over; CPU -->             the column CPU of a table, with a column for each value of the column over
//	<!-- text loader -->                             what the program says of the machine
//	<!-- targets -->                                 what is aimed at, and what was reached
//	<!-- ratios -->                                  the few numbers of the README
//	<!-- end -->
//
// "; rows A | B" after a table's name chooses the rows whose first cells begin so, and "; columns X | Y" the columns
// beside the first.
//
// -charts draws bars of the tables as SVG.
package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
)

func main() {
	measured := flag.String("results", "", "folder of what was measured")
	charts := flag.String("charts", "", "folder for the charts, as SVG")
	tables := flag.String("csv", "", "file of all tables")
	flag.Parse()
	if err := run(*measured, *tables, *charts, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "publish:", err)
		os.Exit(1)
	}
}

func run(measured, tables, charts string, pages []string) error {
	all, err := readCSV(tables)
	if err != nil {
		return err
	}
	if measured != "" {
		fresh, err := readResults(measured)
		if err != nil {
			return err
		}
		maps.Copy(all, fresh)
		if err := os.WriteFile(tables, all.csv(), 0o644); err != nil {
			return err
		}
	}
	var errs []error
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		filled, err := all.fill(string(text))
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", page, err))
			continue
		}
		errs = append(errs, os.WriteFile(page, []byte(filled), 0o644))
	}
	if charts != "" {
		errs = append(errs, all.draw(charts))
	}
	return errors.Join(errs...)
}

// draw writes the charts into a folder.
func (r results) draw(folder string) error {
	files, err := r.charts()
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

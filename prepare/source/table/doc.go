// Package table reads tables with one sample in each row: CSV, TSV and JSON Lines, compressed or not. [OpenCSV] and
// [OpenJSONL] return sources whose fields are columns.
//
// # Two passes
//
// The first pass (tableScan) goes through all rows, because only all cells say what a column is: integers until one
// has a fraction, numbers until one is a word, lists of one length until one differs. Goroutines take blocks of
// lines, and agree on the types that columns have so far (agreement). While they look, they keep the values of the
// agreed types (heldBlock), up to heldBytes, so that a table that fits needs no second pass. A block is read again
// if the types of its columns change later.
//
// The second pass yields either blocks ([source.Blocked], the fast way: cells go from the text into arrays, without
// rows in between), or rows one by one if a column has values of variable length other than text.
//
// # Formats
//
// CSV and JSON Lines are two implementations of tableFormat. Each has a quick path for the rows that nearly all
// tables consist of (typed, which compares eight characters at a time) and a complete one (each). The quick path
// takes a row whole or not at all: it returns 0 for anything unusual, and the complete path decides. Tests compare
// both over random rows. For CSV, a splitter also finds the separators of a whole block first, and the cells are
// then parsed column by column (cells.go).
//
// # Invariants
//
//   - A row with a bad cell is a bad sample, named by its line number. Only the first row must be good, as it
//     says which columns there are.
//   - Names, order and types of columns do not depend on the number of goroutines.
//   - Memory is limited by blocks, heldBytes and maxRow, and does not grow with the size of a file.
package table

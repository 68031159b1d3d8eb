// Package table reads tables with one sample a row: CSV, TSV and JSON Lines, compressed or not. [OpenCSV] and
// [OpenJSONL] return sources whose fields are columns.
//
// # Two passes
//
// The first pass (tableScan) goes through all rows, because only all cells say what a column is: whole numbers
// until one has a fraction, numbers until one is a word, lists of one length until one differs. Goroutines take
// blocks of lines and agree on the types that columns have so far (agreement). While they look, they keep the
// values of the types agreed on (heldBlock), up to heldBytes, so that a table that fits needs no second pass; a
// block whose types turn out to be others later is read again.
//
// The second pass yields either blocks ([source.Blocked], the fast way: cells go from the text into arrays, without
// a row in between) or rows one by one, where a column has values of variable length other than text.
//
// # Formats
//
// CSV and JSON Lines are two implementations of tableFormat. Each has a quick path for the rows that nearly all
// tables consist of (typed, by byte comparisons of eight characters at a time) and a complete one (each). The quick
// path takes a row whole or not at all: it returns 0 for anything unusual, and the complete one decides. Tests
// compare both over random rows.
//
// # Invariants
//
//   - A row with a bad cell is a bad sample with its line number; only the first row, which says the columns, must
//     be good.
//   - Names, order and types of columns do not depend on the number of goroutines.
//   - Memory is bounded by blocks, heldBytes and maxRow, not by the size of a file.
package table

// Package part defines the files by which processes build one dataset together: each rank of a job writes a part,
// and a merge makes the dataset of all parts. The files are the only way in which ranks communicate, so ranks may
// run on different machines at different times, and twice.
//
// A [Plan] says what all ranks agree on: source, recipe, fields, number of ranks. A [Part] is one rank's share: a
// flat dataset of the records of the samples [From, To), and beside it a JSON file with a checksum. The file is
// written last, so a part is complete if and only if its file exists. The dataset of a part has one more field
// ([TraceField]), which lists for each record the samples that became it or were left out before it; the merge
// needs that for duplicates, which may be in different parts. A [Set] is all parts of a Plan, and a source of their
// samples in the order of the original source: what is built from it equals, byte for byte, what one process would
// build.
//
// While a rank works it renews a [Sign], by which status distinguishes ranks that run from ranks that stopped. A
// [Turn] lets one process of a machine at a time make a part; where machines make the same part, the first
// publication wins.
//
// # Invariants
//
//   - A folder of parts may be read at any time: every file appears whole, by a rename, after its bytes are on the
//     disk.
//   - Parts of different Plans are never merged; the error names the first value that differs.
//   - The size of everything that is read is bounded before memory is allocated for it.
package part

// Package unit finds the records of sources whose arrays are not in one place: episodes, trajectories, volumes, samples
// with a group or a file of their own. A unit is a file of several, or a group of a file. A record is a unit, or a row
// of one.
//
// [Records] says which, in the syntax of preprocess --records. A source lists its units as [Unit] values, which
// describe their arrays without reading elements, and [NewColumns] makes columns of them: each is the array of one name
// in all units, one after the other. Units are opened when a record of theirs is read, and a limited number stays open.
//
// Invariants: all units have the same fields, of the same types and shapes, or the source is refused with what to type;
// records come in the order of units, which is the order of their names with digits as numbers.
package unit

// Package unit makes fields of sources whose arrays are not in one place: episodes, trajectories, volumes, samples
// with a group or a file of their own. A unit is one of several files, or a group or array in a file. A record is a
// unit, or a row of a unit.
//
// [Records] declares which, in the notation of preprocess --records. Without a declaration, [Find] and [Guess]
// decide by the lengths of the arrays, and an undecided case is an error that lists what to type. A source gives
// its units as [Unit] values, which describe their arrays ([Member]) without reading elements. [NewColumns] makes
// an array.Column for each member: the arrays of this name in all units, one after the other. Units are opened when
// one of their records is read, and a limited number stays open (pool).
//
// Invariants: all units have the same fields, of the same types and shapes, or the source is refused with a message
// that says what to type. Records come in the order of units: by name, with digits compared as numbers, or in the
// order of creation where a file has it.
package unit

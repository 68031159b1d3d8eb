// Package source finds raw samples and says in which order they come. It decodes nothing:
// a Sample is a name, a label and a way to its bytes, so that whoever needs the bytes can
// read them in a goroutine of its own.
package source

import "iter"

// Source yields samples in an order that is the same each time, on each machine. Nothing
// but names is held in memory. It serves one goroutine; the samples may go to others, and
// their Data can be read until Close.
type Source interface {
	// Info says what the source is. It does not change.
	Info() Info

	// Samples yields every sample, from the first one on at each call. After an error, which
	// means that the source itself cannot be read on, it ends. A sample that turns out to be
	// unreadable is yielded like any other: its Data says what is wrong with it.
	Samples() iter.Seq2[Sample, error]

	// Close lets go of open files.
	Close() error
}

// Info describes a source.
type Info struct {
	Kind    string   // such as "imagefolder"
	Name    string   // last element of its path
	Classes []string // names of the labels 0, 1, ...; nil if samples have no labels
	Count   int64    // samples that are to come, -1 where only their end tells
	Ignored Ignored  // what was passed over
	Hints   []string // sentences for people about what looks unusual
}

// Ignored counts files that are no samples.
type Ignored struct {
	Count int64
	First string // name of one of them
}

// Sample is one raw sample.
type Sample struct {
	Name  string // path inside the source, with slashes; no other sample has it
	Label int64  // index into Info.Classes; 0 where there are none
	Data  Data
}

// Data leads to the bytes of a sample.
type Data interface {
	// Read returns all bytes, in the memory of buf (whose content is lost) if they fit. It
	// may run beside other samples' Read. Errors name neither sample nor path.
	Read(buf []byte) ([]byte, error)
}

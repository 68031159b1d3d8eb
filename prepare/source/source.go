// Package source describes raw samples and where they come from. Its subpackages are the kinds of
// source: folders of images, tables, archives, arrays, datasets. Package kinds opens any of them. No image is
// decoded here: a [Sample] is a name and a way to its values, so that a worker can read and parse the values in
// its own goroutine.
//
// Every source is streamed. Samples come in the same order each time and on each machine,
// and nothing but names and one block of each array is held in memory.
package source

import (
	"errors"
	"fmt"
	"iter"

	"github.com/penstock/penstock/store"
)

// Source yields samples in an order that is the same each time, on each machine. It serves
// one goroutine; the samples may go to others, and their Data can be read until Close.
type Source interface {
	// Info says what the source is. It does not change.
	Info() Info

	// Samples yields every sample, from the first one on at each call. After an error, which
	// means that the source itself cannot be read on, it ends. A sample that turns out to be
	// unreadable is yielded like any other: its Data returns the error.
	Samples() iter.Seq2[Sample, error]

	// Close lets go of open files.
	Close() error
}

// Indexed is a Source that can give its samples in any order.
type Indexed interface {
	Source

	// Sample returns the sample at position i of Samples, 0 <= i < Info().Count. It may run
	// concurrently with other calls.
	Sample(i int64) (Sample, error)
}

// Ranged is an Indexed source that may read the values of consecutive samples at once.
type Ranged interface {
	Indexed

	// InRanges reports whether ReadRange reads a field: one of numbers of a fixed size.
	InRanges(field int) bool

	// ReadRange fills dst with the values that samples [a, b) have of a field. It may run concurrently with other calls.
	ReadRange(field int, a, b int64, dst []byte) error
}

// Named is an Indexed source that knows names without what leads to the values.
type Named interface {
	Indexed

	// SampleName returns the name of the sample at position i of Samples. It may run concurrently with other calls.
	SampleName(i int64) (string, error)
}

// Placed is a Source that may know where its values are, with Options.Places.
type Placed interface {
	Source

	// Places reports whether samples hold no values, and read them from their places.
	Places() bool
}

// Filed is a Source of files, the samples of which follow each other.
type Filed interface {
	Source

	// Files returns the files in the order of their samples, and how many samples each has.
	Files() (paths []string, samples []int64)
}

// Info describes a source.
type Info struct {
	Kind    string        // such as "imagefolder"
	Name    string        // last element of its path
	Fields  []Field       // of every sample
	Count   int64         // samples that are to come, -1 where only their end says
	Unit    string        // what samples are called: "images", "rows", ...
	Splits  []string      // names of the splits that samples are in already, if they are
	Ignored Ignored       // what was passed over
	Hints   []string      // sentences for people about what looks unusual
	Lists   []store.Split // records of units that a list of names in the file has; they may overlap
	Records string        // where the records are, if they are units or rows of units, as package unit writes it
	Chosen  bool          // the fields are Options.Only, if there are such
	Inputs  string        // digest of what a producer makes its samples of, in order; "" if there is none
}

// Field describes one value that every sample has: its type, and what its bytes mean. Of an
// encoded image (Content is tensor.Image) type and shape of the pixels are not known.
type Field struct {
	store.Field
	Origin  string // column, member or array that it comes from, for people
	Derived bool   // follows from the sample's name, so it adds nothing to a fingerprint
	Stored  bool   // a dataset stores the values as they are, so a copy of it does, too

	// Boxes says how boxes are written, and whether keypoints are relative: of fields with that content.
	Boxes BoxFormat
}

// ErrValue marks a value that is not of its field's type.
var ErrValue = errors.New("bad value")

// ValueError returns an error that is ErrValue, without the text of ErrValue.
func ValueError(format string, args ...any) error { return valueError{fmt.Errorf(format, args...)} }

// ErrMissing is the error of a value that is missing: an empty cell, or a null. It is ErrValue, too.
var ErrMissing = ValueError("it is missing")

// ErrNoImage is ErrMissing of an image, for which no value can stand.
var ErrNoImage = fmt.Errorf("an image: %w", ErrMissing)

type valueError struct{ error }

func (e valueError) Unwrap() error      { return e.error }
func (valueError) Is(target error) bool { return target == ErrValue }

// Ignored counts files that are not samples.
type Ignored struct {
	Count int64
	First string // name of one of them
}

// Add counts one more file.
func (i *Ignored) Add(name string) {
	if i.Count == 0 {
		i.First = name
	}
	i.Count++
}

// Sample is one raw sample.
type Sample struct {
	Name  string // path inside the source, with slashes, or its place; no other sample has it
	Split string // one of Info.Splits, if there are any
	File  string // path of the file of rows that it is in
	Data  Data
}

// Data leads to the values of a sample.
type Data interface {
	// Read fills in the value of every field. It may run concurrently with Read of other samples. Errors
	// name neither sample nor path; one about a value is ErrValue.
	Read(v *Values) error
}

// Naming is Data that is read from files which it names.
type Naming interface {
	Data

	// Files returns the paths of the files, and the other values in some form that differs where they do. v is for
	// scratch memory.
	Files(v *Values) (files []string, rest []byte, err error)
}

// Parted is Data with values that are known without a read of the others, and that need no conversion.
type Parted interface {
	Data

	// ReadField fills in the value of a field alone, or returns false if it takes Read.
	ReadField(v *Values, field int) bool
}

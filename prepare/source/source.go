// Package source describes raw samples: where they come from, which fields they have, and how a worker gets the
// bytes of their values. Its subpackages each read one family of formats (folders of images, tables, archives,
// arrays, HDF5, datasets of penstock); package kinds opens any of them by its path.
//
// A [Source] yields [Sample] values. A Sample holds no decoded data: it is a name and a [Data], whose Read fills in
// [Values]. The goroutine that draws samples stays cheap that way, and parsing and decoding run in parallel in the
// workers. [Field] says what the bytes of a value mean. Sources that can do more implement more interfaces:
// [Indexed] and [Ranged] for samples in any order, [Seekable] for a cheap start in the middle, [Blocked] for many
// rows in one call, [Named], [Placed] and [Filed] for callers that need no values.
//
// This package also has what several formats share: detection of a source's kind ([Detect]), globs, braces and
// partitions in paths, decompression ([OpenStream]), the rules for splits in names, and limits on sizes that a file
// claims.
//
// Invariants: a source yields its samples in the same order on each pass and on each machine, as the order decides
// the bytes of the dataset. It is streamed: only names and one block of each array are in memory. Files are
// untrusted, so each size in a file is checked against a limit or the true size before memory is allocated for it,
// and every file is opened through the [Root] of the source.
package source

import (
	"errors"
	"fmt"
	"iter"

	"github.com/penstock/penstock/store"
)

// Source yields samples in an order that is the same on each pass and on each machine. A Source serves one
// goroutine. Its samples may be handed to other goroutines, and their Data can be read until Close.
type Source interface {
	// Info says what the source is. It does not change.
	Info() Info

	// Samples yields every sample, beginning with the first sample at each call. An error means that the source
	// itself cannot be read any further, and ends the sequence. A sample with unreadable values is yielded like any
	// other sample, and its Data returns the error, so that the caller can skip it.
	Samples() iter.Seq2[Sample, error]

	// Close closes the files of the source. Data of its samples cannot be read afterwards.
	Close() error
}

// Indexed is a Source with random access to its samples.
type Indexed interface {
	Source

	// Sample returns the sample at position i of Samples, 0 <= i < Info().Count. It may run
	// concurrently with other calls.
	Sample(i int64) (Sample, error)
}

// Ranged is an Indexed source that may read the values of consecutive samples in one call, which saves a call and
// often a request for each sample.
type Ranged interface {
	Indexed

	// InRanges reports whether ReadRange can read a field. It can only if all values of the field are numbers of
	// one size.
	InRanges(field int) bool

	// ReadRange fills dst with the values of a field in samples [a, b), one after the other; dst has exactly their
	// size. It may run concurrently with other calls.
	ReadRange(field int, a, b int64, dst []byte) error
}

// Named is an Indexed source that returns the name of a sample without opening what Data needs.
type Named interface {
	Indexed

	// SampleName returns the name of the sample at position i of Samples. It may run concurrently with other calls.
	SampleName(i int64) (string, error)
}

// Placed is a Source that was opened with Options.Places and may have noted where the values of its samples are.
type Placed interface {
	Source

	// Places reports whether samples hold no values in memory, so that many samples can be kept, and each Read
	// fetches the values from their file.
	Places() bool
}

// Filed is a Source whose samples come from files, all samples of a file before the samples of the next file.
type Filed interface {
	Source

	// Files returns the files in the order of their samples, and the number of samples in each file.
	Files() (paths []string, samples []int64)
}

// BrokenList is a list of units that is no split: it also names units which the file does not have, or Missing is nil
// and it names no unit with records.
type BrokenList struct {
	Name    string   `json:"name"`
	Missing []string `json:"missing"`
}

// String says what is wrong with the list.
func (b BrokenList) String() string {
	if b.Missing == nil {
		return fmt.Sprintf("the list %s is empty: it names nothing that has records", b.Name)
	}
	return fmt.Sprintf("the list %s names %s, which the file does not have", b.Name, Enumerate(b.Missing, 5))
}

// Info describes a source.
type Info struct {
	Kind    string        // such as "imagefolder"
	Name    string        // last element of the path
	Fields  []Field       // of every sample
	Count   int64         // number of samples; -1 if it is known only after the last sample
	Unit    string        // what samples are called: "images", "rows", ...
	Splits  []string      // names of the splits that the source itself assigns to samples; nil if it assigns none
	Ignored Ignored       // files that were passed over
	Hints   []string      // sentences for people about what looks unusual
	Lists   []store.Split // the lists of record names in the file, as ranges of records; ranges of different lists may overlap
	Broken  []BrokenList  // lists that are no splits
	Records string        // how records are declared in units, in the notation of package unit; "" for other sources
	Inputs  string        // digest of the inputs of a producer, in order; "" for other sources

	// Coordinates has the arrays that are coordinates of axes of the fields, by the name of the axis.
	Coordinates map[string]Coordinates
}

// Coordinates is an array that is the coordinates of an axis.
type Coordinates struct {
	Path string // of the file that has it, whose axis is the axis of all files; "" if it is a field of the whole source
	Name string
}

// Field describes a value that every sample has: its type, and what its bytes mean. The type and shape of an
// encoded image (Content is tensor.Image) are unknown until the image is decoded, so they describe the bytes of the
// file instead.
type Field struct {
	store.Field
	Origin  string // for messages: the column, member or array that the value comes from
	Column  string // of a table; "" for several columns, and for other sources
	Derived bool   // computed from the sample's name, so a fingerprint of the name covers the value
	Stored  bool   // the source is a dataset that stores the value unchanged, so the copy can store it unchanged, too

	// Boxes is the notation of boxes, and whether keypoints are relative. It is set only for fields with these
	// contents.
	Boxes BoxFormat
}

// ErrValue marks a value that does not fit the type of its field. Such an error concerns one sample, which
// --on-error can skip, and not the source.
var ErrValue = errors.New("bad value")

// ValueError formats an error for which errors.Is(err, ErrValue) holds. The message does not include the text of
// ErrValue.
func ValueError(format string, args ...any) error { return valueError{fmt.Errorf(format, args...)} }

// ErrMissing is the error of a missing value: an empty cell, or a null. It is an ErrValue, too.
var ErrMissing = ValueError("it is missing")

// ErrNoImage is the ErrMissing of an image. It is an error of its own because --missing can name no value that
// would stand for an image.
var ErrNoImage = fmt.Errorf("an image: %w", ErrMissing)

// valueError wraps an error and makes it an ErrValue for errors.Is, without changing the message.
type valueError struct{ error }

func (e valueError) Unwrap() error      { return e.error }
func (valueError) Is(target error) bool { return target == ErrValue }

// Ignored counts files that are not samples.
type Ignored struct {
	Count int64
	First string // name of the first such file, as an example
}

// Add counts one more file.
func (i *Ignored) Add(name string) {
	if i.Count == 0 {
		i.First = name
	}
	i.Count++
}

// Sample is one raw sample. It is small and may be copied; Data refers to everything that Read needs.
type Sample struct {
	Name  string // path inside the source, with slashes, or position; unique in the source
	Split string // one of Info.Splits, "" if there are none
	File  string // path of the file that has the sample as a row; "" otherwise
	Data  Data
}

// Data gives access to the values of a sample.
type Data interface {
	// Read fills in the value of every field. It may run concurrently with Read of other samples. An error names
	// neither the sample nor the path, as the caller adds both; an error about a value is an ErrValue.
	Read(v *Values) error
}

// Naming is Data that can name the files that its values are read from.
type Naming interface {
	Data

	// Files returns the paths of the files, and the values that are not from files in any encoding that differs if
	// the values differ. Together they identify the sample without a read of the files. v provides scratch memory.
	Files(v *Values) (files []string, rest []byte, err error)
}

// Parted is Data some of whose values can be had without reading the other values.
type Parted interface {
	Data

	// ReadField fills in the value of one field and returns true, or returns false if the value needs Read. It
	// returns no error: a value that cannot be read is left to Read, which returns the error.
	ReadField(v *Values, field int) bool
}

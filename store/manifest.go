package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/sys/shell"
)

// Manifest describes a dataset's content and how it was made. A new dataset has no dates in it, so the same input and
// recipe give the same bytes.
type Manifest struct {
	Format     string  `json:"format"`           // "penstock"
	Version    int     `json:"version"`          // 1; 2 with fields that lie on images; 3 with files of other names; 4 with Deleted
	Generation int     `json:"generation"`       // 1; one more with each change
	Parent     int     `json:"parent,omitempty"` // the generation that this generation was made from
	Change     *Change `json:"change,omitempty"` // how the generation was made; nil for a new dataset
	ID         string  `json:"id"`               // 32 hex digits over schema and content
	Records    int64   `json:"records"`          // stored records, deleted ones included
	Fields     []Field `json:"fields"`           //
	Splits     []Split `json:"splits,omitempty"` // if there are any, each record is in exactly one
	Shards     []Shard `json:"shards,omitempty"` // for a flat dataset only
	// The records that this generation leaves out; nil if it leaves out no record.
	Deleted *Deleted `json:"deleted,omitempty"`
	// For Zarr, by field: the names of arrays, or groups, that differ from the name of their field.
	Arrays map[string]string `json:"arrays,omitempty"`
	// For Zarr: the CRC32Cs of the zarr.json files, by their paths.
	Metadata map[string]string `json:"metadata,omitempty"`
	// By array: how arrays of an HDF5 file or of Zarr are compressed; arrays that are not compressed are missing.
	Storage    map[string]*Storage    `json:"storage,omitempty"`
	Statistics map[string]*Statistics `json:"statistics,omitempty"` // by field
	Recipe     *Recipe                `json:"recipe,omitempty"`     //
	Source     *SourceInfo            `json:"source,omitempty"`     //
	Skipped    []Skipped              `json:"skipped,omitempty"`    // in the order of the source
	// The state of statistics and identity, from which an append continues without reading a record.
	BuilderState []byte `json:"ledger,omitempty"`
}

// Change says how a generation was made from its parent.
type Change struct {
	// "append", "normalize", "add column", "set column", "drop column", "rename column", "delete", "restore records",
	// "erase" or "restore"
	Operation string     `json:"operation"`
	Columns   []string   `json:"columns,omitempty"` // the fields; for a rename, the old and the new name
	From      int        `json:"from,omitempty"`    // for a restore: the generation that was restored
	Records   int64      `json:"records,omitempty"` // for a delete and a restore of records: how many
	Where     string     `json:"where,omitempty"`   // the condition that chose the records
	By        string     `json:"by,omitempty"`      // the command or call
	Time      *time.Time `json:"time,omitempty"`    // time of the commit; if nil, the file's modification time counts
	Write     string     `json:"write,omitempty"`   // random hex digits, by which a writer knows its own commit
}

// Split is a named part of the records, such as "train".
type Split struct {
	Name   string     `json:"name"`
	Ranges [][2]int64 `json:"ranges"` // records [first, end), in order; empty ones are left out
}

// Records returns how many records the split has.
func (s Split) Records() int64 {
	n := int64(0)
	for _, r := range s.Ranges {
		n += r[1] - r[0]
	}
	return n
}

// Shard is a run of records that have files of their own. First is the number of the first record, Count the number of
// records, and Files lists for every column its payload and then its checksums.
type Shard = layout.Shard

// File is one file of a flat dataset: the Field it belongs to, its Name inside the folder, the Rows of values of a
// ragged field, and Bytes and CRC32C of the whole file.
type File = layout.File

// Storage says how an array of an HDF5 file or of Zarr is compressed. The array's own metadata says so, too; only the
// manifest has the reasons.
type Storage struct {
	Filter string `json:"filter"` // "gzip" or, in Zarr, "zstd"
	Level  int    `json:"level"`  // 1 to 9, for zstd to 22
	// Whether bytes were shuffled before compression: the first bytes of all elements come first, then the second
	// bytes, and so on.
	Shuffle   bool   `json:"shuffle"`
	ChunkRows int64  `json:"chunk_rows"` // rows that are compressed together
	Bytes     int64  `json:"bytes"`      // of all rows
	Stored    int64  `json:"stored"`     // bytes of all rows after compression
	Encoder   string `json:"encoder"`    // another encoder makes other bytes of the same rows
	Reason    string `json:"reason"`     // why this level and shuffle were chosen
}

// Recipe states the steps that make the dataset again from its source.
type Recipe struct {
	Program    string            `json:"program"` // name and version
	Decoder    string            `json:"decoder,omitempty"`
	Options    map[string]string `json:"options,omitempty"`    // such as "exif-orientation": "ignored"
	Transforms json.RawMessage   `json:"transforms,omitempty"` // a list; every parameter explicit
}

// SourceInfo identifies the raw samples.
type SourceInfo struct {
	Kind        string `json:"kind"` // such as "imagefolder"
	Name        string `json:"name"` // last element of its path
	Samples     int64  `json:"samples"`
	Bytes       int64  `json:"bytes"`
	Fingerprint string `json:"fingerprint"`      // SHA-256 over a CRC32C of each sample: of its name, size and CRC32C
	Inputs      string `json:"inputs,omitempty"` // digest of what a program made the samples of, in order
}

// Skipped is a sample of the source that is not in the dataset, and the reason.
type Skipped struct {
	Sample string `json:"sample"` // its path inside the source
	Reason string `json:"reason"`
}

// Live returns the number of records that are not deleted.
func (m *Manifest) Live() int64 {
	if m.Deleted == nil {
		return m.Records
	}
	return m.Records - m.Deleted.Records
}

// LiveSplits returns the splits with record numbers that do not count deleted records, as readers number records.
func (m *Manifest) LiveSplits() ([]Split, error) {
	if m.Deleted == nil {
		return m.Splits, nil
	}
	gone, err := m.Deleted.Words(m.Records)
	if err != nil {
		return nil, err
	}
	var ends []int64
	for _, s := range m.Splits {
		for _, r := range s.Ranges {
			ends = append(ends, r[0], r[1])
		}
	}
	slices.Sort(ends)
	number, at, live := make(map[int64]int64), int64(0), int64(0)
	for _, end := range ends {
		for ; at < end; at++ {
			live += int64(^gone[at/64] >> (at % 64) & 1)
		}
		number[end] = live
	}
	out := make([]Split, len(m.Splits))
	for i, s := range m.Splits {
		out[i] = Split{Name: s.Name, Ranges: [][2]int64{}}
		for _, r := range s.Ranges {
			if a, b := number[r[0]], number[r[1]]; a < b {
				out[i].Ranges = append(out[i].Ranges, [2]int64{a, b})
			}
		}
	}
	return out, nil
}

// Schema returns the fields as a Schema.
func (m *Manifest) Schema() Schema { return Schema{Fields: m.Fields} }

// Encode returns the manifest as indented JSON with a newline at its end. Its last key is
// "crc32c": the CRC32C, as 8 hex digits, of everything that stands before those digits.
func (m *Manifest) Encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(m); err != nil {
		return nil, err
	}
	return seal(b.Bytes()), nil
}

// Text before and after the digits of the checksum.
const (
	sealHead = ",\n  \"crc32c\": \""
	sealTail = "\"\n}\n"
)

// seal adds the checksum to an indented object that is not empty.
func seal(text []byte) []byte {
	text = append(bytes.TrimSuffix(text, []byte("\n}\n")), sealHead...)
	return append(append(text, layout.HexCRC(layout.CRC32C(text))...), sealTail...)
}

// checkSeal makes sure that every byte of a manifest is as it was written. A manifest that was edited by hand could
// contradict the files, and every later error would point at the files.
func checkSeal(text []byte) error {
	body, ok := bytes.CutSuffix(text, []byte(sealTail))
	at := len(body) - 8
	if !ok || at < 0 || !bytes.HasSuffix(body[:at], []byte(sealHead)) {
		return errors.New("it does not end with its crc32c; was it edited?")
	}
	if got := layout.HexCRC(layout.CRC32C(body[:at])); got != string(body[at:]) {
		return fmt.Errorf("its CRC32C is %s, but it says %q; was it edited?", got, body[at:])
	}
	return nil
}

// DecodeManifest reads a manifest that Encode wrote and checks everything that can be checked without the files. A
// manifest of a newer version is ErrUnsupported; any other fault, down to a single changed byte, is ErrCorrupt.
// Unknown keys are ignored, so that a later minor addition stays readable.
func DecodeManifest(data []byte) (*Manifest, error) {
	m, err := parseManifest(data)
	if err != nil {
		return nil, shell.Bounded(err)
	}
	for _, err := range []error{checkSeal(data), m.Validate()} {
		if err != nil {
			return nil, shell.Bounded(fmt.Errorf("%w: %w", err, ErrCorrupt))
		}
	}
	return m, nil
}

func parseManifest(data []byte) (*Manifest, error) {
	m := new(Manifest)
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(m); err != nil {
		if err == io.EOF { // callers take a bare io.EOF for the end of their own input
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("not a manifest: %w: %w", err, ErrCorrupt)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one JSON value: %w", ErrCorrupt)
	}
	if m.Format != layout.FormatName {
		return nil, fmt.Errorf("format is not %q: %w", layout.FormatName, ErrUnsupported)
	}
	if m.Version < 1 || m.Version > layout.FormatVersion {
		return nil, fmt.Errorf("format version %d; this program reads 1 to %d: %w", m.Version, layout.FormatVersion,
			ErrUnsupported)
	}
	return m, nil
}

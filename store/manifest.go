package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/penstock/penstock/tensor"
)

// What this version writes into a manifest, and the newest that it reads.
const (
	FormatName    = "penstock"
	FormatVersion = 1
)

// ManifestName is the file that makes a folder a flat dataset.
const ManifestName = "manifest.json"

// Manifest says what a dataset holds and how it came to be. It has no dates in it, so the
// same input and recipe give the same bytes.
type Manifest struct {
	Format     string                 `json:"format"`               // FormatName
	Version    int                    `json:"version"`              // FormatVersion
	Generation int                    `json:"generation"`           // 1; one more with each change
	ID         string                 `json:"id"`                   // 32 hex digits over schema and content, see Ledger
	Records    int64                  `json:"records"`              //
	Fields     []Field                `json:"fields"`               //
	Shards     []Shard                `json:"shards,omitempty"`     // of a flat dataset; an HDF5 file has none
	Statistics map[string]*Statistics `json:"statistics,omitempty"` // by field
	Recipe     *Recipe                `json:"recipe,omitempty"`     //
	Source     *SourceInfo            `json:"source,omitempty"`     //
	Skipped    []Skipped              `json:"skipped,omitempty"`    // in the order of the source
}

// Shard is a run of records that have files of their own.
type Shard struct {
	First int64  `json:"first"` // its first record
	Count int64  `json:"count"` // records, at least 1
	Files []File `json:"files"` // for every field its payload, then its checksums
}

// File is one file of a flat dataset.
type File struct {
	Field  string `json:"field"`
	Name   string `json:"name"`   // inside the dataset's folder
	Bytes  int64  `json:"bytes"`  // the whole file
	CRC32C string `json:"crc32c"` // of the whole file, 8 hex digits
}

// Recipe is what has to be repeated to make the dataset again from its source.
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
	Fingerprint string `json:"fingerprint"` // SHA-256 over name, size and CRC32C of every sample, in order
}

// Skipped is a sample that is not in the dataset, and why.
type Skipped struct {
	Sample string `json:"sample"` // its path inside the source
	Reason string `json:"reason"`
}

// Schema returns the fields as a Schema.
func (m *Manifest) Schema() Schema { return Schema{Fields: m.Fields} }

// Encode returns the manifest as indented JSON with a newline at its end.
func (m *Manifest) Encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(m)
	return b.Bytes(), err
}

// DecodeManifest reads what Encode wrote and checks all that can be checked without the
// files. A manifest of a newer version is ErrUnsupported, any other fault ErrCorrupt.
// Unknown keys are ignored, so that a later minor addition stays readable.
func DecodeManifest(data []byte) (*Manifest, error) {
	m := new(Manifest)
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(m); err != nil {
		return nil, fmt.Errorf("not a manifest: %w: %w", err, ErrCorrupt)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one JSON value: %w", ErrCorrupt)
	}
	if m.Format != FormatName {
		return nil, fmt.Errorf("format is %q, not %q: %w", m.Format, FormatName, ErrUnsupported)
	}
	if m.Version < 1 || m.Version > FormatVersion {
		return nil, fmt.Errorf("format version %d; this program reads 1 to %d: %w", m.Version, FormatVersion, ErrUnsupported)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrCorrupt)
	}
	return m, nil
}

// maxRecords leaves room to multiply a record number by a record's size.
const maxRecords = 1 << 46

func (m *Manifest) check() error {
	if m.Records < 1 || m.Records > maxRecords {
		return fmt.Errorf("%d records", m.Records)
	}
	if err := m.Schema().Validate(); err != nil {
		return err
	}
	for _, f := range m.Fields {
		if m.Records > 1<<62/int64(f.RecordBytes()) {
			return fmt.Errorf("field %q: %d records of %d bytes are more than any file", f.Name, m.Records, f.RecordBytes())
		}
	}
	if len(m.Shards) == 0 {
		return nil
	}
	return m.checkShards()
}

// checkShards makes sure that the shards cover [0, Records) once, and that each names for
// every field a payload and a checksum file of the right size, by a plain file name.
func (m *Manifest) checkShards() error {
	var next int64
	for i, s := range m.Shards {
		if s.First != next || s.Count < 1 || s.Count > m.Records-next {
			return fmt.Errorf("shard %d: records [%d, +%d) do not follow record %d of %d", i, s.First, s.Count, next, m.Records)
		}
		next += s.Count
		if len(s.Files) != 2*len(m.Fields) {
			return fmt.Errorf("shard %d: %d files for %d fields", i, len(s.Files), len(m.Fields))
		}
		for k, f := range m.Fields {
			want := [2]File{payloadFile(f, i, s.Count), checksumFile(f, i, s.Count)}
			for j, w := range want {
				got := s.Files[2*k+j]
				w.CRC32C = got.CRC32C
				if got != w || len(got.CRC32C) != 8 {
					return fmt.Errorf("shard %d: file %+v is not the %s of %d bytes that the schema needs", i, got, w.Name, w.Bytes)
				}
			}
		}
	}
	if next != m.Records {
		return fmt.Errorf("shards hold %d records, the manifest says %d", next, m.Records)
	}
	return nil
}

// payloadFile and checksumFile give name and size of a shard's files, without the CRC.
func payloadFile(f Field, shard int, count int64) File {
	return File{Field: f.Name, Name: fmt.Sprintf("%s-%05d.npy", f.Name, shard), Bytes: HeaderBytes + count*int64(f.RecordBytes())}
}

func checksumFile(f Field, shard int, count int64) File {
	blocks := Blocks(count, f.RecordBytes())
	return File{Field: f.Name, Name: fmt.Sprintf("%s-%05d.crc.npy", f.Name, shard), Bytes: HeaderBytes + 4*blocks}
}

// checksumSpec is the field that a checksum file holds.
var checksumSpec = tensor.Spec{Name: "crc", DType: tensor.Uint32}

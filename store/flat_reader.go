package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/tensor"
)

// maxManifest bounds the memory that opening a dataset can take.
const maxManifest = 1 << 30

// IsFlat reports whether path is a folder with a manifest.
func IsFlat(path string) bool {
	info, err := os.Stat(filepath.Join(path, ManifestName))
	return err == nil && info.Mode().IsRegular()
}

// OpenFlat reads the manifest of a flat dataset and checks every file's size and header
// against it. It does not read payloads: see the verification of package mmapds.
//
// A fault in a file is ErrCorrupt, a manifest of a newer version ErrUnsupported, a folder
// without manifest fs.ErrNotExist.
func OpenFlat(path string) (*Dataset, error) {
	m, err := ReadManifest(path)
	if err != nil {
		return nil, fmt.Errorf("store: open %q: %w", path, err)
	}
	columns := m.Schema().Columns()
	for i, s := range m.Shards {
		if err := checkShard(path, columns, s); err != nil {
			return nil, fmt.Errorf("store: open %q: shard %d: %w", path, i, err)
		}
	}
	return &Dataset{
		Path: path, Format: "flat", Schema: m.Schema(), Records: m.Records, Manifest: m,
		Columns: ColumnsOf(m.Schema(), m.Shards, path),
	}, nil
}

// ReadFlat is OpenFlat for a folder that need not be one of the system's, whose manifest holds
// data. It looks at no other file: what is read there must be compared with the checksums.
func ReadFlat(path string, data []byte) (*Dataset, error) {
	m, err := DecodeManifest(data)
	if err == nil && len(m.Shards) == 0 {
		err = fmt.Errorf("it lists no shards: %w", ErrCorrupt)
	}
	if err != nil {
		return nil, fmt.Errorf("store: open %q: %s: %w", path, ManifestName, err)
	}
	return &Dataset{
		Path: path, Format: "flat", Schema: m.Schema(), Records: m.Records, Manifest: m,
		Columns: ColumnsOf(m.Schema(), m.Shards, path),
	}, nil
}

// ColumnsOf returns the columns of shards whose files are in a folder. The shards must be
// those of a manifest that DecodeManifest returned; it does not look at the files.
func ColumnsOf(schema Schema, shards []Shard, dir string) []Column {
	columns := schema.Columns()
	for _, s := range shards {
		for k := range columns {
			c, payload, sums := &columns[k], s.Files[2*k], s.Files[2*k+1]
			c.add(Extent{
				Path: filepath.Join(dir, payload.Name), Offset: HeaderBytes, Count: s.rows(c, payload),
				SumsPath: filepath.Join(dir, sums.Name), SumsOffset: HeaderBytes, SumsCRC32C: sums.CRC32C,
			})
		}
	}
	return columns
}

// ReadManifest reads and checks the manifest of the flat dataset at path, and no other file.
func ReadManifest(path string) (*Manifest, error) {
	m, err := readManifest(path, ManifestName)
	if err == nil && len(m.Shards) == 0 {
		err = fmt.Errorf("%s: it lists no shards: %w", ManifestName, ErrCorrupt)
	}
	return m, err
}

// readManifest reads the manifest of a folder, which is in the file name.
func readManifest(path, name string) (*Manifest, error) {
	f, err := os.Open(filepath.Join(path, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no %s in it (%w), so it is not a dataset of penstock, or its build did not finish; to make a dataset of samples, run: %s", name, fs.ErrNotExist, shell.Penstock("preprocess SOURCE DEST"))
	}
	if err != nil {
		return nil, bare(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err != nil {
		return nil, bare(err)
	}
	if len(data) > maxManifest {
		return nil, fmt.Errorf("%s: larger than 1 GiB: %w", name, ErrUnsupported)
	}
	m, err := DecodeManifest(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

func checkShard(dir string, columns []Column, s Shard) error {
	for k := range columns {
		c, payload, sums := &columns[k], s.Files[2*k], s.Files[2*k+1]
		rows := s.rows(c, payload)
		if err := checkFile(dir, payload, c.Spec, rows); err != nil {
			return err
		}
		if err := checkFile(dir, sums, checksumSpec, Blocks(rows, c.Spec.RecordBytes())); err != nil {
			return err
		}
	}
	return nil
}

// checkFile makes sure that a file has the size that it must have, and the right header.
func checkFile(dir string, want File, spec tensor.Spec, n int64) error {
	f, err := os.Open(filepath.Join(dir, want.Name))
	if err != nil {
		return fmt.Errorf("%s: %w", want.Name, bare(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("%s: %w", want.Name, bare(err))
	}
	if !info.Mode().IsRegular() || info.Size() != want.Bytes {
		return fmt.Errorf("%s: %d bytes, but the manifest says %d: %w", want.Name, info.Size(), want.Bytes, ErrCorrupt)
	}
	header := make([]byte, HeaderBytes)
	if _, err := io.ReadFull(f, header); err != nil {
		return fmt.Errorf("%s: %w", want.Name, bare(err))
	}
	if err := checkHeader(header, spec, n); err != nil {
		return fmt.Errorf("%s: %w", want.Name, err)
	}
	return nil
}

// bare takes the path out of a file error whose path the message already has.
func bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

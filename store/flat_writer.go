package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// FlatOptions configures CreateFlat. The zero value is usable.
type FlatOptions struct {
	ShardBytes int64 // of the largest field of a shard; 0 means 256 MiB
	Overwrite  bool  // replace a dataset that is there
}

// FlatWriter writes a flat dataset: a folder of .npy files and a manifest.
type FlatWriter struct {
	schema Schema
	stage  *Stage
	ledger *Ledger
	per    int64 // records a shard
	fields []shardFile
	shards []Shard
	inOpen int64 // records in the open shard
	sums   []uint32
	err    error
}

// CreateFlat begins a flat dataset at dest. It holds 1 MiB of memory a field.
func CreateFlat(dest string, schema Schema, opts FlatOptions) (*FlatWriter, error) {
	if err := schema.Validate(); err != nil {
		return nil, fmt.Errorf("store: create %q: %w", dest, err)
	}
	stage, err := NewStage(dest, opts.Overwrite)
	if err != nil {
		return nil, fmt.Errorf("store: create: %w", err)
	}
	if opts.ShardBytes <= 0 {
		opts.ShardBytes = 256 << 20
	}
	w := &FlatWriter{
		schema: schema, stage: stage, ledger: NewLedger(schema),
		per:  RecordsPerShard(schema, opts.ShardBytes),
		sums: make([]uint32, len(schema.Fields)),
	}
	for _, f := range schema.Fields {
		w.fields = append(w.fields, newShardFile(f))
	}
	return w, nil
}

// RecordsPerShard returns how many records make shards of about shardBytes in their largest
// field, such that a full shard of every field is whole pages: then the shards of a field
// can be mapped side by side.
func RecordsPerShard(s Schema, shardBytes int64) int64 {
	step, largest := int64(1), int64(1)
	for _, f := range s.Fields {
		size := int64(f.RecordBytes())
		largest = max(largest, size)
		step = lcm(step, HeaderBytes/gcd(HeaderBytes, size))
	}
	return max(1, shardBytes/largest/step) * step
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func lcm(a, b int64) int64 { return a / gcd(a, b) * b }

// Append implements Writer.
func (w *FlatWriter) Append(r *Record) error {
	if w.err != nil {
		return w.err
	}
	if err := w.append(r); err != nil {
		w.err = fmt.Errorf("store: write %q: record %d: %w", w.stage.Dest(), w.ledger.Records(), err)
	}
	return w.err
}

func (w *FlatWriter) append(r *Record) error {
	if w.inOpen == 0 {
		if err := w.openShard(); err != nil {
			return err
		}
	}
	if err := w.ledger.Add(r, w.sums); err != nil {
		return err
	}
	for i := range w.fields {
		if err := w.fields[i].append(r.Values[i], w.sums[i]); err != nil {
			return err
		}
	}
	w.inOpen++
	if w.inOpen == w.per {
		return w.closeShard()
	}
	return nil
}

func (w *FlatWriter) openShard() error {
	for i := range w.fields {
		if err := w.fields[i].open(w.stage, len(w.shards)); err != nil {
			return err
		}
	}
	return nil
}

func (w *FlatWriter) closeShard() error {
	s := Shard{First: w.ledger.Records() - w.inOpen, Count: w.inOpen}
	for i := range w.fields {
		files, err := w.fields[i].close(w.stage, len(w.shards), w.inOpen)
		if err != nil {
			return err
		}
		s.Files = append(s.Files, files...)
	}
	w.shards = append(w.shards, s)
	w.inOpen = 0
	return nil
}

// Commit implements Writer.
func (w *FlatWriter) Commit(info Info) (*Manifest, error) {
	if w.err != nil {
		return nil, w.err
	}
	m, err := w.commit(info)
	if err != nil {
		w.err = fmt.Errorf("store: write %q: %w", w.stage.Dest(), err)
		return nil, w.err
	}
	w.err = errors.New("store: the dataset is committed")
	return m, nil
}

func (w *FlatWriter) commit(info Info) (*Manifest, error) {
	if w.ledger.Records() == 0 {
		return nil, errors.New("no records: an empty dataset cannot be mapped, so none is written")
	}
	if w.inOpen > 0 {
		if err := w.closeShard(); err != nil {
			return nil, err
		}
	}
	m := w.ledger.Manifest(info)
	m.Shards = w.shards
	text, err := m.Encode()
	if err != nil {
		return nil, err
	}
	if err := writeFile(w.stage.Path(ManifestName), text); err != nil {
		return nil, err
	}
	return m, w.stage.PublishFolder()
}

// Close implements Writer.
func (w *FlatWriter) Close() error {
	for i := range w.fields {
		w.fields[i].abandon()
	}
	return w.stage.Abort()
}

// shardFile writes one field of the open shard.
type shardFile struct {
	field  Field
	shift  crcShift // appends a record
	per    int64    // records a block
	file   *os.File
	buf    []byte
	crc    uint32 // of the payload so far
	block  uint32 // of the open block so far
	in     int64  // records in the open block
	blocks []uint32
}

const writeBuffer = 1 << 20

func newShardFile(f Field) shardFile {
	return shardFile{
		field: f, per: BlockRecords(f.RecordBytes()),
		shift: newCRCShift(int64(f.RecordBytes())),
	}
}

func (s *shardFile) open(stage *Stage, shard int) (err error) {
	s.file, err = os.Create(stage.Path(payloadFile(s.field, shard, 0).Name))
	if err != nil {
		return err
	}
	s.crc, s.block, s.in, s.blocks = 0, 0, 0, s.blocks[:0]
	s.buf = append(s.buf[:0], make([]byte, HeaderBytes)...) // the header comes last
	return nil
}

func (s *shardFile) append(value []byte, crc uint32) error {
	s.crc = s.shift.join(s.crc, crc)
	s.block = s.shift.join(s.block, crc)
	s.in++
	if s.in == s.per {
		s.endBlock()
	}
	if len(s.buf)+len(value) > writeBuffer {
		if err := s.flush(); err != nil {
			return err
		}
	}
	if len(value) >= writeBuffer {
		_, err := s.file.Write(value)
		return err
	}
	s.buf = append(s.buf, value...)
	return nil
}

func (s *shardFile) endBlock() {
	s.blocks = append(s.blocks, s.block)
	s.block, s.in = 0, 0
}

func (s *shardFile) flush() error {
	_, err := s.file.Write(s.buf)
	s.buf = s.buf[:0]
	return err
}

// close finishes the payload file, writes the checksum file, and says what they are.
func (s *shardFile) close(stage *Stage, shard int, count int64) ([]File, error) {
	if s.in > 0 {
		s.endBlock()
	}
	if err := s.flush(); err != nil {
		return nil, err
	}
	payload := payloadFile(s.field, shard, count)
	header := npyHeader(s.field.Spec, count)
	if _, err := s.file.WriteAt(header, 0); err != nil {
		return nil, err
	}
	shift := newCRCShift(payload.Bytes - HeaderBytes)
	payload.CRC32C = HexCRC(shift.join(CRC32C(header), s.crc))
	file := s.file
	s.file = nil
	if err := SyncFile(file); err != nil {
		return nil, err
	}
	sums := checksumFile(s.field, shard, count)
	text := npyHeader(checksumSpec, int64(len(s.blocks)))
	for _, b := range s.blocks {
		text = binary.LittleEndian.AppendUint32(text, b)
	}
	sums.CRC32C = HexCRC(CRC32C(text))
	return []File{payload, sums}, writeFile(stage.Path(sums.Name), text)
}

func (s *shardFile) abandon() {
	if s.file != nil {
		s.file.Close()
	}
}

// writeFile writes a read-only file and waits until it is on disk.
func writeFile(path string, data []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		f.Close()
		return err
	}
	return SyncFile(f)
}

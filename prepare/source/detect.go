package source

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/npy"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/internal/zarr"
	"github.com/penstock/penstock/tensor"
)

// Detect returns the kind of a source, one of Kinds. It looks at contents first, as names are often wrong.
func Detect(path string) (string, error) {
	root, err := OpenRoot(path, Options{})
	if err != nil {
		_, named := Files(path)
		return "", cmp.Or(named, fmt.Errorf("source %s: %w", path, WithoutPath(err)))
	}
	defer root.Close()
	return DetectIn(root, path)
}

// DetectIn is Detect for a source whose files root may open.
func DetectIn(root *vfs.Root, path string) (string, error) {
	path, _, _ = SplitGeneration(path)
	files, err := Files(path)
	if err != nil {
		return "", err
	}
	info, err := root.Stat(files[0])
	if err != nil {
		return "", fmt.Errorf("source %s: %w", path, WithoutPath(err))
	}
	if info.IsDir() {
		return DetectFolder(root, files[0]), nil
	}
	if err := readable(root, files[0]); err != nil { // once, and not again with each look at it
		return "", fmt.Errorf("source %s: %w", path, WithoutPath(err))
	}
	if kind := DetectFile(root, files[0]); kind != "" {
		return kind, nil
	}
	if what := ForeignFile(root, files[0]); what != "" {
		return "", fmt.Errorf("source %s: %w", path, ForeignError(what))
	}
	folder, _, _ := strings.Cut(path, "*")
	return "", fmt.Errorf("source %s: %s", path, strange(root, files[0], filepath.Dir(folder)))
}

// SplitGeneration divides DATASET@GENERATION like layout.SplitGeneration, and also works for a path in a bucket.
// There, a folder has generations if it has a manifest.
func SplitGeneration(path string) (folder, generation string, ok bool) {
	i := strings.LastIndexByte(path, '@')
	if !vfs.Mounted(path) {
		return layout.SplitGeneration(path)
	}
	if i <= 0 || !layout.IsName(path[i+1:]) {
		return path, "", false
	}
	if _, err := vfs.Stat(path); err == nil {
		return path, "", false
	}
	for _, name := range []string{layout.ManifestName, layout.ZarrManifest} {
		if _, err := vfs.Stat(filepath.Join(path[:i], filepath.FromSlash(name))); err == nil {
			return path[:i], path[i+1:], true
		}
	}
	return path, "", false
}

// readable returns the error of reading the first bytes of a file, such as the error of a stalled server. Detection
// itself ignores errors of reads, so without this check an unreadable file would be reported as a file of an
// unknown kind.
func readable(root *vfs.Root, path string) error {
	f, err := root.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err = f.Read(make([]byte, headBytes)); err == io.EOF {
		return nil
	}
	return err
}

// DetectFolder returns the kind of a folder. The order of the tests matters: exact marks come first (a manifest,
// metadata of Zarr), then names of files, then tests that read files. A folder without any mark is a folder of
// images.
func DetectFolder(root *vfs.Root, path string) string {
	manifest, err := root.Stat(filepath.Join(path, layout.ManifestName))
	if err == nil && manifest.Mode().IsRegular() || errors.Is(err, vfs.ErrOutside) {
		return "flat"
	}
	if IsZarr(root, path) {
		return "zarr"
	}
	for _, try := range []struct{ pattern, kind string }{
		{"data_batch_*.bin", "cifar"}, {"test_batch.bin", "cifar"}, {"fine_label_names.txt", "cifar"},
		{"*idx[1-9]-ubyte*", "idx"}, {"*.npy", "npy"}, {"*.npz", "npz"},
		{"*.safetensors", "safetensors"}, {"*.h5", "hdf5"}, {"*.hdf5", "hdf5"}, {"*.h5ad", "hdf5"}, {"*.parquet", "parquet"},
		{"*.tar", "tar"}, {"*.tar.gz", "tar"}, {"*.tar.zst", "tar"}, {"*.zip", "zip"},
		{"dataset_dict.json", "arrow"}, {"*.arrow", "arrow"}, {"*.feather", "arrow"},
	} {
		found := root.Glob(path, try.pattern)
		if !IsHidden(try.pattern) {
			found = Visible(found)
		}
		if len(found) > 0 {
			return try.kind
		}
	}
	if found := root.Glob(path, "*.zarr"); len(found) > 0 && IsZarr(root, found[0]) {
		return "zarr"
	}
	if found := root.Glob(path, "*.nc"); len(found) > 0 && DetectFile(root, found[0]) == "hdf5" {
		return "hdf5" // and not netCDF of version 3
	}
	for _, pattern := range []string{"index.json", filepath.Join("*", "index.json")} {
		if found := root.Glob(path, pattern); len(found) > 0 && DetectFile(root, found[0]) == "mds" {
			return "mds"
		}
	}
	if len(COCOFiles(root, path)) > 0 {
		return "coco"
	}
	if len(VOCFolders(root, path)) > 0 {
		return "voc"
	}
	if isYOLOFolder(root, path) {
		return "yolo"
	}
	if MaskPairs(root, path) != nil {
		return "maskfolder"
	}
	if seemsLabelMe(root, path) {
		return "labelme"
	}
	if files := PartitionFiles(root, path); files != nil {
		return DetectFile(root, files[0])
	}
	if files, _ := LeRobot(root, path); files != nil {
		return "parquet"
	}
	for _, kind := range contentKinds {
		if found := filesOf(root, path, kind); len(found) > 0 && DetectFile(root, found[0]) == kind {
			return kind
		}
	}
	return "imagefolder"
}

// IsZarr reports whether a folder is a group or an array of Zarr, and not a folder of such.
func IsZarr(root *vfs.Root, folder string) bool {
	return slices.ContainsFunc([]string{"zarr.json", ".zgroup", ".zarray", ".zmetadata"}, func(name string) bool {
		_, err := root.Stat(filepath.Join(folder, name))
		return err == nil
	})
}

// contentKinds are the kinds whose file names in a folder are too general to decide: the first file must have the
// content, too.
var contentKinds = []string{"tfrecord", "tokens"}

// filePatterns has the globs for the files of a kind in a folder.
var filePatterns = map[string][]string{
	"arrow":    {"*.arrow", "*.feather"},
	"tokens":   {"*.bin"},
	"tfrecord": {"*.tfrecord*", "*.tfrec*", "*-of-*"},
}

// filesOf returns the files of a folder whose names fit a kind, sorted by name. Indexes, licenses and descriptions
// that people keep beside them are left out.
func filesOf(root *vfs.Root, folder, kind string) (files []string) {
	for _, pattern := range filePatterns[kind] {
		found := root.Glob(folder, pattern)
		files = append(files, found...)
	}
	slices.Sort(files)
	return slices.DeleteFunc(Visible(slices.Compact(files)), func(f string) bool {
		return slices.Contains([]string{".json", ".txt", ".idx", ".index", ".md", ".lock"}, strings.ToLower(filepath.Ext(f)))
	})
}

// FilesOf returns the files of a kind that path stands for: the file itself, the files that a glob matches, or the
// files of a folder.
func FilesOf(root *vfs.Root, path, kind string) ([]string, error) {
	return filesIn(root, path, strings.Join(filePatterns[kind], ", "), kind == "arrow", func(folder string) []string {
		return filesOf(root, folder, kind)
	})
}

// DetectFile returns the kind of a file: by its first bytes, then by its first decompressed bytes, then by its name
// and the places where formats have their marks; "" if nothing fits.
func DetectFile(root *vfs.Root, path string) string {
	head := ReadHead(root, path, headBytes)
	name := strings.ToLower(filepath.Base(path))
	if strings.HasSuffix(name, ".view.json") {
		return "view"
	}
	switch kind := detectHead(head, name); {
	case kind == "zip" && isZippedZarr(root, path):
		return "zarr"
	case kind != "":
		return kind
	}
	if isCompressed(head) {
		if kind := detectHead(decompressedHead(root, path), strings.TrimSuffix(name, filepath.Ext(name))); kind != "" {
			return kind
		}
	}
	switch {
	case strings.Contains(name, ".tar"), strings.HasSuffix(name, ".tgz"):
		return "tar"
	case strings.Contains(name, "-idx"):
		return "idx"
	// perhaps after a program that unpacks it
	case (strings.HasSuffix(name, ".zip") || bytes.HasPrefix(head, []byte("MZ")) || bytes.HasPrefix(head, []byte("#!"))) &&
		isZip(root, path):
		return "zip"
	case strings.HasSuffix(name, ".bin"):
		index := strings.TrimSuffix(path, filepath.Ext(path)) + ".idx"
		if string(ReadHead(root, index, len(MegatronMagic))) == MegatronMagic {
			return "tokens"
		}
		if info, err := root.Stat(path); err == nil && (info.Size()%3073 == 0 || info.Size()%3074 == 0) {
			return "cifar" // a label, or two, and 32 x 32 pixels of three bytes
		}
	case strings.HasSuffix(name, ".json") && IsCOCO(root, path):
		return "coco"
	case (strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")) && IsYOLO(root, path):
		return "yolo"
	case strings.Contains(name, ".tfrec"): // train.tfrecord-00000-of-00016
		return "tfrecord"
	}
	for _, packed := range []string{".gz", ".zst", ".bz2", ".xz", ".lz4"} {
		name = strings.TrimSuffix(name, packed)
	}
	return ByExtension[filepath.Ext(name)]
}

// isZip reports whether a file ends with the directory of a zip archive, whatever it begins with: self-extracting
// archives begin with a program.
func isZip(root *vfs.Root, path string) bool {
	return opens(root, path, func(f io.ReaderAt, size int64) error {
		_, err := zip.NewReader(f, size)
		return err
	})
}

// isZippedZarr reports whether a zip archive is a Zarr store.
func isZippedZarr(root *vfs.Root, path string) bool {
	return opens(root, path, func(f io.ReaderAt, size int64) error {
		_, err := zarr.Zip(f, size)
		return err
	})
}

// opens reports whether open succeeds for the file; open gets the size of the file in bytes.
func opens(root *vfs.Root, path string, open func(f io.ReaderAt, size int64) error) bool {
	f, err := root.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	return err == nil && open(f, info.Size()) == nil
}

// headBytes is the length of a file's beginning that identifies its kind. A MATLAB 7.3 file is HDF5 after a user
// block of 512 bytes.
const headBytes = 512 + len(hdf5Magic)

// detectHead returns the kind of a file by its first bytes, "" if they identify none. The lower-case name only
// decides what a zip archive is.
func detectHead(head []byte, name string) string {
	text := string(head)
	switch {
	case strings.HasPrefix(text, npy.Magic):
		return "npy"
	case strings.HasPrefix(text, "PAR1"):
		return "parquet"
	case strings.HasPrefix(text, hdf5Magic), len(head) == headBytes && strings.HasSuffix(text, hdf5Magic):
		return "hdf5"
	case strings.HasPrefix(text, "PK\x03\x04") && strings.HasSuffix(name, ".npz"):
		return "npz"
	case strings.HasPrefix(text, "PK\x03\x04") && foreign[filepath.Ext(name)] == "": // which .pt and .xlsx are, too
		return "zip"
	case isTarHead(head):
		return "tar"
	case hasPrefix(text, "ARROW1", "FEA1"), isArrowStream(head):
		return "arrow"
	case IsTFRecord(head):
		return "tfrecord"
	case IsIDX(head):
		return "idx"
	case strings.HasPrefix(text, MegatronMagic), TokensOf(head) != tensor.Invalid:
		return "tokens"
	case IsArrayOfObjects(head):
		return "jsonl"
	case strings.HasPrefix(text, "{") && strings.Contains(text, `"column_encodings"`) &&
		strings.Contains(text, `"shards"`):
		return "mds"
	}
	return ""
}

// IsArrayOfObjects reports whether a file begins as a JSON array of objects, after an optional byte order mark.
func IsArrayOfObjects(head []byte) bool {
	const blanks = " \t\r\n"
	text, is := strings.CutPrefix(strings.TrimLeft(strings.TrimPrefix(string(head), "\xef\xbb\xbf"), blanks), "[")
	return is && strings.HasPrefix(strings.TrimLeft(text, blanks), "{")
}

// MegatronMagic is the magic number of the .idx file of Megatron's token files.
const MegatronMagic = "MMIDIDX\x00\x00"

// TokensOf returns the element type of a token file with the header of llm.c (dev/data/data_common.py), which
// begins with a magic number and a version: 20240520 version 1 has uint16, 20240801 version 7 has uint32. It
// returns tensor.Invalid for other files.
func TokensOf(head []byte) tensor.DType {
	switch {
	case len(head) < 12:
	case binary.LittleEndian.Uint32(head) == 20240520 && binary.LittleEndian.Uint32(head[4:]) == 1:
		return tensor.Uint16
	case binary.LittleEndian.Uint32(head) == 20240801 && binary.LittleEndian.Uint32(head[4:]) == 7:
		return tensor.Uint32
	}
	return tensor.Invalid
}

// isCompressed reports whether OpenStream would decompress a file that begins with head.
func isCompressed(head []byte) bool {
	return hasPrefix(string(head), "\x1f\x8b", "BZh", "\x28\xb5\x2f\xfd") || isZlib(head)
}

// isZlib reports whether head is a zlib header (RFC 1950) of a usual compression level; TFRecord files may use zlib
// instead of gzip. The header 0x78 0x5e of levels 2 to 5 is not accepted, as a text can begin with "x^".
func isZlib(head []byte) bool {
	return len(head) > 1 && head[0] == 0x78 && (head[1] == 0x01 || head[1] == 0x9c || head[1] == 0xda)
}

// decompressedHead returns the first decompressed bytes of a file, fewer if the data is short or damaged.
func decompressedHead(root *vfs.Root, path string) []byte {
	s, err := OpenStream(context.Background(), root, path)
	if err != nil {
		return nil
	}
	defer s.Close()
	head := make([]byte, headBytes)
	n, _ := io.ReadFull(s, head)
	return head[:n]
}

// isArrowStream reports whether a file begins like an Arrow IPC stream: the continuation mark 0xFFFFFFFF, the size
// of the first message, and the offset of its flatbuffer root. The bounds exclude other files that begin with 0xFF
// bytes.
func isArrowStream(head []byte) bool {
	if len(head) < 12 || !hasPrefix(string(head), "\xff\xff\xff\xff") {
		return false
	}
	size, root := binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint32(head[8:])
	return size > 0 && size%4 == 0 && size < 64<<20 && root > 0 && root < size
}

// IsTFRecord reports whether a file begins as TFRecord files do: with a length and the masked checksum of the
// length.
func IsTFRecord(head []byte) bool {
	return len(head) >= 12 && MaskedCRC(head[:8]) == binary.LittleEndian.Uint32(head[8:])
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// MaskedCRC returns the CRC-32C of b, rotated and offset as TFRecord stores it (tensorflow/core/lib/hash/crc32c.h).
// The mask is there because a CRC of data that itself contains CRCs is weak.
func MaskedCRC(b []byte) uint32 {
	crc := crc32.Checksum(b, castagnoli)
	return (crc>>15 | crc<<17) + 0xa282ead8
}

// isTarHead reports whether the first block of a file is a tar header: "ustar" at offset 257.
func isTarHead(head []byte) bool { return len(head) >= 262 && string(head[257:262]) == "ustar" }

// ByExtension has the kinds of files without a magic number, by extension.
var ByExtension = map[string]string{
	".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".h5": "hdf5", ".hdf5": "hdf5", ".hdf": "hdf5",
	".h5ad":  "hdf5",
	".arrow": "arrow", ".feather": "arrow", ".safetensors": "safetensors",
}

// hdf5Magic is the format signature of an HDF5 superblock.
const hdf5Magic = "\x89HDF\r\n\x1a\n"

// IsIDX reports whether a file begins as IDX files do: two zero bytes, the code of an element type, the number of
// axes.
func IsIDX(head []byte) bool {
	if len(head) < 8 || head[0] != 0 || head[1] != 0 {
		return false
	}
	return strings.IndexByte("\x08\x09\x0b\x0c\x0d\x0e", head[2]) >= 0 && head[3] >= 1 && head[3] < tensor.MaxRank
}

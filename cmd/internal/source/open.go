package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/cmd/internal/vfs"
	"github.com/penstock/penstock/store"
)

// Kinds are the values of Options.Kind, "auto" aside.
var Kinds = []string{"imagefolder", "csv", "jsonl", "tar", "parquet", "npy", "npz", "idx", "cifar", "hdf5", "flat"}

// Options configures Open.
type Options struct {
	Kind   string // one of Kinds; "" or "auto" finds out
	Fields string // which columns become which fields, see ParseFields; "" for all

	// Outside allows paths in tables, and links in folders of images, that lead out of the source's folder.
	Outside bool

	// Seen is called now and then with the number of samples looked at, where Open has to look
	// at all. It may be nil.
	Seen func(n int64)

	// IsImage tells from a file's first bytes (up to 16) whether it is an image; nil takes
	// names for it.
	IsImage func(head []byte) bool
}

// Open opens the samples at path: a folder, a file, or for archives and tables a glob of
// files. What can be found out about all samples beforehand is found out now: their number,
// types, class names. At the end of ctx, its cause is the error.
func Open(ctx context.Context, path string, opts Options) (Source, error) {
	kind := opts.Kind
	if kind == "" || kind == "auto" {
		var err error
		if kind, err = Detect(path); err != nil {
			return nil, err
		}
	}
	open, ok := openers[kind]
	if !ok {
		return nil, fmt.Errorf("source %s: unknown kind %q; known are %s", path, kind, strings.Join(Kinds, ", "))
	}
	wanted, err := ParseFields(opts.Fields)
	if err != nil {
		return nil, err
	}
	if opts.Seen == nil {
		opts.Seen = func(int64) {}
	}
	return open(ctx, path, opts, wanted)
}

var openers = map[string]openFunc{
	"imagefolder": openFolder, "csv": openCSV, "jsonl": openJSONL, "tar": openTar, "npy": openNPY, "npz": openNPZ,
	"idx": openIDX, "cifar": openCIFAR, "hdf5": openHDF5, "flat": openFlat, "parquet": openParquet,
}

func openFolder(ctx context.Context, path string, opts Options, wanted []Wanted) (Source, error) {
	if wanted != nil {
		return nil, fmt.Errorf("source %s: --fields: a folder of images has no columns", path)
	}
	s, err := OpenImageFolder(ctx, path, ImageFolderOptions{IsImage: opts.IsImage, Seen: opts.Seen, Outside: opts.Outside})
	if err != nil {
		return nil, err // not s, which would be a Source that is not nil
	}
	return s, nil
}

type openFunc func(ctx context.Context, path string, opts Options, wanted []Wanted) (Source, error)

// Check makes sure that there is something of that kind at path, as far as a look tells.
func Check(path, kind string) error {
	switch kind {
	case "imagefolder":
		return CheckFolder(path)
	case "", "auto":
		_, err := Detect(path)
		return err
	}
	_, err := expand(path)
	return err
}

// Detect tells the kind of a source from what is there, not from names alone.
func Detect(path string) (string, error) {
	files, err := expand(path)
	if err != nil {
		return "", err
	}
	info, err := vfs.Stat(files[0])
	if err != nil {
		return "", fmt.Errorf("source %s: %w", path, withoutPath(err))
	}
	if info.IsDir() {
		for _, pattern := range []string{"*.arrow", "dataset_dict.json"} { // of datasets.save_to_disk
			if found, _ := vfs.Glob(filepath.Join(escape(files[0]), pattern)); len(found) > 0 {
				return "", fmt.Errorf("source %s: the folder %s", path, foreign[".arrow"])
			}
		}
		return detectFolder(files[0]), nil
	}
	if kind := detectFile(files[0]); kind != "" {
		return kind, nil
	}
	return "", fmt.Errorf("source %s: %s", path, strange(files[0]))
}

// foreign are the formats of other loaders, by extension, and the way here.
var foreign = map[string]string{
	".arrow":    "holds Arrow data; write Parquet of it: datasets.load_from_disk(FOLDER).to_parquet(FILE)",
	".feather":  "holds Arrow data; write Parquet of it: pandas.read_feather(FILE).to_parquet(OTHER)",
	".tfrecord": "holds TFRecords; write tar files of them, as WebDataset's ShardWriter does",
	".beton":    "is an FFCV dataset; take the samples that it was made of",
	".pkl":      "is a Python pickle, which may run any program; write its arrays with numpy.savez",
	".pt":       "is a PyTorch pickle, which may run any program; write its tensors with numpy.savez",
	".pth":      "is a PyTorch pickle, which may run any program; write its tensors with numpy.savez",
	".mat":      "is a MATLAB file; write it with save -v7.3, which is HDF5",
	".xlsx":     "is an Excel file; save it as CSV",
	".rec":      "is an MXNet RecordIO file; write tar files or a folder of its images",
	".lmdb":     "is an LMDB database; write tar files or a folder of its samples",
	".avro":     "is an Avro file; write Parquet of it",
	".orc":      "is an ORC file; write Parquet of it: pyarrow.orc.read_table(FILE), pyarrow.parquet.write_table",
	".xls":      "is an Excel file; save it as CSV",
	".mdb":      "is an LMDB database; write tar files or a folder of its samples",
	".wav":      audio, ".flac": audio, ".mp3": audio, ".ogg": audio, ".opus": audio, ".m4a": audio,
	".mp4": video, ".avi": video, ".mov": video, ".mkv": video, ".webm": video,
}

const (
	audio = "is a sound, which is not decoded here; write its samples as arrays with numpy.save, or keep files as they are in a tar"
	video = "is a video, which is not decoded here; write its frames as images, or keep files as they are in a tar"
)

// foreignFile says what a file of another loader's format is and what to do, "" if it is none.
func foreignFile(path string) string {
	if what := foreign[strings.ToLower(filepath.Ext(path))]; what != "" {
		return what
	}
	head := make([]byte, 64)
	text := string(head[:readHead(path, head)])
	switch {
	case strings.Contains(filepath.Base(path), ".tfrecord"): // train.tfrecord-00000-of-00016
		return foreign[".tfrecord"]
	case len(text) > 1 && text[0] == 0x80 && text[1] >= 2 && text[1] <= 5: // a pickle's protocol
		return foreign[".pkl"]
	case strings.HasPrefix(text, "RIFF") && !strings.Contains(text, "WEBP"):
		return audio
	}
	return ""
}

// strange says of a file of no known kind what it is, as far as its first bytes tell.
func strange(path string) string {
	if what := foreignFile(path); what != "" {
		return what
	}
	head := make([]byte, 64)
	text := strings.TrimLeft(string(head[:readHead(path, head)]), " \t\r\n")
	switch {
	case text == "":
		return "is empty"
	case strings.HasPrefix(text, "PK\x03\x04"):
		return "is a zip archive; unpack it first, or call it .npz if NumPy wrote it"
	case hasPrefix(text, "\xff\xd8\xff", "\x89PNG\r\n", "GIF8", "RIFF", "II*\x00", "MM\x00*"):
		return "is a file of one image; give the folder that it lies in"
	case strings.HasPrefix(text, "["):
		return "looks like one JSON array; write an object a line, such as with jq -c '.[]', or --from says what it is"
	case strings.HasPrefix(text, "{"):
		return "looks like JSON; with an object a line it is --from jsonl"
	}
	return "is a file of no kind that is known; --from says which: " + strings.Join(Kinds, ", ")
}

// hasPrefix reports whether text begins with one of those.
func hasPrefix(text string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(text, p) })
}

// detectFolder tells what a folder holds; one of images is the usual.
func detectFolder(path string) string {
	if info, err := vfs.Stat(filepath.Join(path, store.ManifestName)); err == nil && info.Mode().IsRegular() {
		return "flat"
	}
	for _, try := range []struct{ pattern, kind string }{
		{"data_batch_*.bin", "cifar"}, {"test_batch.bin", "cifar"}, {"fine_label_names.txt", "cifar"},
		{"*idx[1-9]-ubyte*", "idx"}, {"*.npy", "npy"}, {"*.parquet", "parquet"}, {"*.tar", "tar"}, {"*.tar.gz", "tar"}, {"*.tar.zst", "tar"},
	} {
		if found, _ := vfs.Glob(filepath.Join(escape(path), try.pattern)); len(found) > 0 {
			return try.kind
		}
	}
	return "imagefolder"
}

// detectFile tells the kind of a file by its first bytes, or by its name where they say
// nothing, "" if by neither.
func detectFile(path string) string {
	long := make([]byte, 512+len(hdf5Magic))
	long = long[:readHead(path, long)]
	head := long[:min(len(long), 512)]
	name := strings.ToLower(filepath.Base(path))
	switch {
	case strings.HasPrefix(string(head), npyMagic):
		return "npy"
	case strings.HasPrefix(string(head), "PAR1"):
		return "parquet"
	case strings.HasPrefix(string(head), hdf5Magic), len(long) == cap(long) && strings.HasSuffix(string(long), hdf5Magic): // MATLAB's is behind 512 bytes
		return "hdf5"
	case strings.HasPrefix(string(head), "PK\x03\x04") && strings.HasSuffix(name, ".npz"):
		return "npz"
	case isTarHead(head), strings.Contains(name, ".tar"), strings.HasSuffix(name, ".tgz"):
		return "tar"
	case isIDXHead(head), strings.Contains(name, "-idx"):
		return "idx"
	case strings.HasSuffix(name, ".bin"):
		return "cifar"
	}
	for _, packed := range []string{".gz", ".zst", ".bz2", ".xz", ".lz4"} {
		name = strings.TrimSuffix(name, packed)
	}
	return byExtension[filepath.Ext(name)]
}

const hdf5Magic = "\x89HDF\r\n\x1a\n"

// isTarHead reports whether a file's first block is a header of tar.
func isTarHead(head []byte) bool { return len(head) >= 262 && string(head[257:262]) == "ustar" }

var byExtension = map[string]string{
	".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".h5": "hdf5", ".hdf5": "hdf5",
}

// Files returns the files or folders that a path stands for, of which there is one at least.
func Files(path string) ([]string, error) { return expand(path) }

// expand returns the files that path is: itself, or what it matches as a glob, by name, or
// one after the other what its braces stand for.
func expand(path string) ([]string, error) {
	if path == "-" {
		return nil, fmt.Errorf("source -: standard input is read only once, which is not enough; write it to a file first")
	}
	_, absent := vfs.Lstat(path)
	if absent == nil {
		if info, err := vfs.Stat(path); err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDevice) != 0 {
			return nil, fmt.Errorf("source %s: is %s, which is read only once; write what comes of it to a file first", path, describeMode(info.Mode()))
		}
		return []string{path}, nil
	}
	list, err := braces(path)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", path, err)
	}
	if len(list) > 1 || list[0] != path {
		return expandEach(list)
	}
	if !strings.ContainsAny(path, "*?[") {
		return nil, notThere(path, absent, "there is no such file or folder")
	}
	files, err := vfs.Glob(path)
	if err != nil || len(files) == 0 {
		return nil, notThere(path, absent, "no file matches")
	}
	return files, nil
}

// notThere is the error for a path that is not there, or where looking for it ended with
// another error: a store that does not answer, a folder that may not be looked into.
func notThere(path string, err error, text string) error {
	var at *fs.PathError
	if errors.As(err, &at) && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("source %s: %w", path, at.Err)
	}
	return fmt.Errorf("source %s: %s", path, text)
}

// escape makes a path that a glob matches as it is.
func escape(path string) string {
	return strings.NewReplacer("*", "[*]", "?", "[?]", "[", "[[]").Replace(path)
}

// readHead fills b with the first bytes of a file and returns how many there are.
func readHead(path string, b []byte) int {
	f, err := vfs.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	n, _ := f.Read(b)
	return n
}

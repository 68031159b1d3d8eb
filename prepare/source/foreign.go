package source

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/internal/vfs"
)

// foreign has the formats that are recognized and not read, by file extension, and what the user can do instead.
// The texts continue "source PATH: ".
var foreign = map[string]string{
	".beton": "is an FFCV dataset; use the samples that it was built from",
	".pkl":   "is a Python pickle, which may run any program; write its arrays with numpy.savez",
	".pt":    "is a PyTorch pickle, which may run any program; write its tensors with numpy.savez",
	".pth":   "is a PyTorch pickle, which may run any program; write its tensors with numpy.savez",
	".mat":   "is a MATLAB file; write it with save -v7.3, which is HDF5",
	".xlsx":  "is an Excel file; save it as CSV",
	".rec":   "is an MXNet RecordIO file; write tar files or a folder of its images",
	".lmdb":  "is an LMDB database; write tar files or a folder of its samples",
	".avro":  "is an Avro file; write Parquet of it",
	".orc":   "is an ORC file; write Parquet of it: pyarrow.orc.read_table(FILE), pyarrow.parquet.write_table",
	".xls":   "is an Excel file; save it as CSV",
	".mdb":   "is an LMDB database; write tar files or a folder of its samples",
	".wav":   audio, ".flac": audio, ".mp3": audio, ".ogg": audio, ".opus": audio, ".m4a": audio,
	".mp4": video, ".avi": video, ".mov": video, ".mkv": video, ".webm": video,
}

const (
	audio = "is a sound, which is not decoded here; write its samples as arrays with numpy.save, or keep files as they " +
		"are in a tar"
	rawNumbers = "has no header that says what it is; if it has the elements of an array, as numpy.tofile writes them, give " +
		"their type, and the shape of the array, in which * is any number of rows: " + RawFlag + "; if it has tokens of a " +
		"language model: --from tokens"
	video = "is a video, which is not decoded here; write its frames as images, or keep files as they are in a tar"
)

// RawFlag is an example of the flag that declares the element type and shape of a file without a header.
const RawFlag = "--records '*:float32[*,4]'"

// ForeignError is the error of a source in a known format that is not read. The text names the format and the way
// to convert it.
type ForeignError string

func (e ForeignError) Error() string { return string(e) }

// ForeignFile returns what is known about a file of a format that is not read, and the advice for the user; ""
// for any other file.
func ForeignFile(root *vfs.Root, path string) string {
	if what := foreign[strings.ToLower(filepath.Ext(path))]; what != "" {
		return what
	}
	text := string(ReadHead(root, path, 64))
	switch {
	case len(text) > 1 && text[0] == 0x80 && text[1] >= 2 && text[1] <= 5: // a pickle's protocol
		return foreign[".pkl"]
	case strings.HasPrefix(text, "RIFF") && !strings.Contains(text, "WEBP"):
		return audio
	case text != "" && slices.Contains([]string{".bin", ".raw", ".dat"}, strings.ToLower(filepath.Ext(path))):
		return rawNumbers
	case strings.HasPrefix(strings.TrimLeft(strings.TrimPrefix(text, "\xef\xbb\xbf"), " \t\r\n"), "{"):
		names := arraysIn(ReadHead(root, path, 64<<10))
		if len(names) == 0 {
			return ""
		}
		rows := strings.TrimSuffix(path, filepath.Ext(path)) + "-rows.json"
		return fmt.Sprintf("is a JSON object, and arrays of objects are in it (%s); write the array that has the records, and "+
			"give %s: %s", Enumerate(names, 5), shell.Line(filepath.Base(rows)), shell.Command("python -c", "import json, sys; "+
			`json.dump(json.load(open(sys.argv[1], "rb"))[sys.argv[2]], open(sys.argv[3], "w"))`,
			filepath.ToSlash(path), names[0], filepath.ToSlash(rows)))
	}
	return ""
}

// arraysIn returns the members of a JSON object that begin as arrays of objects, as far as the head of its file has them;
// nil if more than the object is in the file.
func arraysIn(head []byte) (names []string) {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	d := json.NewDecoder(bytes.NewReader(head))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return nil
	}
	for d.More() {
		token, err := d.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return names
		}
		value := bytes.TrimLeft(head[d.InputOffset():], ": \t\r\n")
		if IsArrayOfObjects(value[:min(len(value), 512)]) {
			names = append(names, name)
		}
		if err := d.Decode(new(json.RawMessage)); err != nil {
			return names // it goes on after the head
		}
	}
	_, _ = d.Token()
	if _, err := d.Token(); err != io.EOF {
		return nil
	}
	return names
}

// strange describes a file of no known kind by its first bytes, for an error message. folder has the file, or all
// files of a glob.
func strange(root *vfs.Root, path, folder string) string {
	text := strings.TrimLeft(string(ReadHead(root, path, 64)), " \t\r\n")
	switch {
	case text == "":
		return "is empty"
	case hasPrefix(text, "\xff\xd8\xff", "\x89PNG\r\n", "GIF8", "RIFF", "II*\x00", "MM\x00*", "II+\x00", "MM\x00+"),
		len(text) > 12 && (text[4:12] == "ftypavif" || text[4:11] == "ftyphei" || text[4:12] == "ftypmif1"):
		return "is a file of one image; give the folder of all: " + folder
	case strings.HasPrefix(text, "["):
		return "begins as a JSON array of other values than objects, whose members would be fields; --from says what it is"
	case strings.HasPrefix(text, "{"):
		return "looks like JSON; with an object a line it is --from jsonl"
	}
	return "unknown kind of file; choose one with --from: " + strings.Join(Kinds, ", ")
}

// hasPrefix reports whether text begins with one of prefixes.
func hasPrefix(text string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(text, p) })
}

//go:build linux

package kinds

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/internal/vfs"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/store/flat"
	"github.com/penstock/penstock/store/zarr"
	"github.com/penstock/penstock/tensor"
)

var strangeFolders = flag.Int("strange", 150, "folders that TestStrangeFolders makes")

// inside and canary are words in the files of a source, and in those of its twin outside. Both have one length.
const inside, canary = "aaaaaaaa", "CANARYxx"

// aSource is a source for TestStrangeFolders. make writes its files: all values follow from the word.
type aSource struct {
	path   string // of the source, in the folder
	opts   source.Options
	summed bool // its files are compared with checksums
	make   func(t testing.TB, dir, word string)
}

// strangeSources are a source of each kind whose files are several, or are named by others.
var strangeSources = map[string]aSource{
	"imagefolder": {make: func(t testing.TB, dir, word string) {
		for _, name := range []string{"cat/a.png", "cat/below/b.png", "dog/c"} {
			put(t, dir, name, photo(t, word))
		}
	}},
	"csv": {opts: source.Options{Fields: "photo:image,word:text"}, make: func(t testing.TB, dir, word string) {
		put(t, dir, "t.csv", "photo,word\nin/a.png,"+word+"\nin/b.png,"+word+"\n")
		put(t, dir, "in/a.png", photo(t, word))
		put(t, dir, "in/b.png", photo(t, word))
	}, path: "t.csv"},
	"csv folder": {opts: source.Options{Kind: "csv"}, make: func(t testing.TB, dir, word string) {
		put(t, dir, "a.csv", "word\n"+word+" b c\n")
		put(t, dir, "b.csv", "word\n"+word+" d e\n")
	}},
	"jsonl": {opts: source.Options{Fields: "photo:image,word:text"}, make: func(t testing.TB, dir, word string) {
		put(t, dir, "t.jsonl", `{"photo": "in/a.png", "word": "`+word+"\"}\n")
		put(t, dir, "in/a.png", photo(t, word))
	}, path: "t.jsonl"},
	"tar": {make: func(t testing.TB, dir, word string) {
		put(t, dir, "0.tar", packed(t, "a.txt="+word))
		put(t, dir, "1.tar", packed(t, "b.txt="+word))
	}},
	"tar places": {opts: source.Options{Kind: "tar", Places: true}, make: func(t testing.TB, dir, word string) {
		put(t, dir, "0.tar", packed(t, "a.txt="+word))
		put(t, dir, "1.tar", packed(t, "b.txt="+word))
	}},
	"zip": {make: func(t testing.TB, dir, word string) {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		f, _ := w.Create("a.txt")
		_, _ = f.Write([]byte(word))
		require.NoError(t, w.Close())
		put(t, dir, "a.zip", b.String())
	}},
	"npy": {make: func(t testing.TB, dir, word string) {
		for _, name := range []string{"x.npy", "y.npy"} {
			file := npy(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 4), }", 0)
			put(t, dir, name, string(file)+word)
		}
	}},
	"idx": {make: func(t testing.TB, dir, word string) {
		put(t, dir, "train-images-idx3-ubyte", "\x00\x00\x08\x03\x00\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00\x02"+word)
		put(t, dir, "train-labels-idx1-ubyte", "\x00\x00\x08\x01\x00\x00\x00\x02"+word[:2])
	}},
	"cifar": {make: func(t testing.TB, dir, word string) {
		record := "\x00" + strings.Repeat(word, 384)
		put(t, dir, "data_batch_1.bin", record)
		put(t, dir, "test_batch.bin", record)
		put(t, dir, "batches.meta.txt", word+"\nother\n")
	}},
	"parquet": {make: func(t testing.TB, dir, word string) {
		var b bytes.Buffer
		w := parquet.NewGenericWriter[struct{ Word string }](&b)
		_, _ = w.Write([]struct{ Word string }{{word + " and more"}, {word}})
		require.NoError(t, w.Close())
		put(t, dir, "a.parquet", b.String())
		put(t, dir, "b.parquet", b.String())
	}},
	"tfrecord": {make: func(t testing.TB, dir, word string) {
		feature := func(field byte, b string) string { return string([]byte{field<<3 | 2, byte(len(b))}) + b }
		entry := feature(1, "word") + feature(2, feature(1, feature(1, word)))
		example := []byte(feature(1, feature(1, entry)))
		head := binary.LittleEndian.AppendUint64(nil, uint64(len(example)))
		b := append(head, binary.LittleEndian.AppendUint32(nil, source.MaskedCRC(head))...)
		b = append(append(b, example...), binary.LittleEndian.AppendUint32(nil, source.MaskedCRC(example))...)
		put(t, dir, "a.tfrecord", string(b))
		put(t, dir, "b.tfrecord", string(b))
	}},
	"arrow": {make: func(t testing.TB, dir, word string) {
		data, err := os.ReadFile("testdata/arrow/labels.arrow")
		require.NoError(t, err)
		if word == canary { // numbers of labels, in the last part of the body
			for i := len(data) / 4; i < len(data)-2; i++ {
				if data[i] == 'd' && data[i+1] == 'o' {
					data[i] = 'D'
				}
			}
		}
		put(t, dir, "state.json", `{"_data_files": [{"filename": "a.arrow"}]}`)
		put(t, dir, "a.arrow", string(data))
	}},
	"mds": {make: func(t testing.TB, dir, word string) {
		shard := string(mdsShard([]byte(strings.Repeat(word, 100))))
		put(t, dir, "shard.00000.mds", shard)
		put(t, dir, "index.json", `{"version": 2, "shards": [{"column_encodings": ["bytes"], "column_names": ["x"], "column_sizes": [null], "compression": null, "format": "mds", "hashes": [], "raw_data": {"basename": "shard.00000.mds", "bytes": `+fmt.Sprint(len(shard))+`, "hashes": {}}, "samples": 20, "size_limit": 1000, "version": 2, "zip_data": null}]}`)
	}},
	"tokens": {path: "gpt.idx", make: func(t testing.TB, dir, word string) {
		index := append([]byte(source.MegatronMagic), 1, 0, 0, 0, 0, 0, 0, 0, 1)
		index = binary.LittleEndian.AppendUint64(index, 1)
		index = binary.LittleEndian.AppendUint64(index, 1)
		index = binary.LittleEndian.AppendUint32(index, 8)
		index = binary.LittleEndian.AppendUint64(index, 0)
		put(t, dir, "gpt.idx", string(index))
		put(t, dir, "gpt.bin", word)
	}},
	"zarr": {opts: source.Options{Fields: "a"}, make: func(t testing.TB, dir, word string) {
		put(t, dir, ".zgroup", `{"zarr_format": 2}`)
		put(t, dir, "a/.zarray", `{"zarr_format": 2, "shape": [3, 4], "chunks": [2, 4], "dtype": "|u1", "compressor": null, "filters": null, "fill_value": 97, "order": "C"}`)
		put(t, dir, "a/0.0", word)
		put(t, dir, "a/1.0", word)
	}},
	"flat": {summed: true, make: func(t testing.TB, dir, word string) {
		writeStrange(t, dir, word, func(schema store.Schema) (store.Writer, error) {
			return flat.Create(dir, schema, flat.Options{})
		})
	}},
	"own zarr": {summed: true, opts: source.Options{Kind: "zarr"}, make: func(t testing.TB, dir, word string) {
		writeStrange(t, dir, word, func(schema store.Schema) (store.Writer, error) {
			return zarr.Create(dir, schema, zarr.Options{})
		})
	}},
	"coco": {make: func(t testing.TB, dir, word string) {
		put(t, dir, "annotations/instances_val2017.json", `{"images": [{"id": 9, "file_name": "b.png", "width": 6, "height": 5}], "annotations": [], "categories": [{"id": 1, "name": "`+word+`"}]}`)
		put(t, dir, "val2017/b.png", photo(t, word))
	}},
	"coco file": {opts: source.Options{Kind: "coco"}, path: "annotations/instances_val2017.json", make: func(t testing.TB, dir, word string) {
		put(t, dir, "annotations/instances_val2017.json", `{"images": [{"id": 9, "file_name": "b.png", "width": 6, "height": 5}], "annotations": [], "categories": [{"id": 1, "name": "x"}]}`)
		put(t, dir, "val2017/b.png", photo(t, word))
	}},
	"voc": {opts: source.Options{Fields: "images,boxes,labels,mask"}, make: func(t testing.TB, dir, word string) {
		box := map[string]string{inside: "1 1 6 5", canary: "2 2 3 3"}[word]
		for _, name := range []string{"a", "b"} {
			put(t, dir, "Annotations/"+name+".xml", vocXML(vocObject("dog", box, "")))
			put(t, dir, "JPEGImages/"+name+".png", photo(t, word))
			put(t, dir, "SegmentationClass/"+name+".png", photo(t, word))
		}
		put(t, dir, "ImageSets/Main/train.txt", "a\n"+map[string]string{inside: "b\n", canary: canary + "\n"}[word])
	}},
	"yolo": {make: func(t testing.TB, dir, word string) {
		put(t, dir, "data.yaml", "train: train.txt\nval: val/images\nnames: [x"+word+"]\n")
		put(t, dir, "train.txt", "train/images/a.png\n"+map[string]string{canary: canary + ".png\n"}[word])
		for _, split := range []string{"train", "val"} {
			put(t, dir, split+"/images/a.png", photo(t, word))
			put(t, dir, split+"/labels/a.txt", "0 0.5 0.5 0.5 "+map[string]string{inside: "0.4", canary: "0.3"}[word])
		}
	}},
	"yolo folder": {opts: source.Options{Kind: "yolo"}, make: func(t testing.TB, dir, word string) {
		put(t, dir, "classes.txt", word+"\nb\n")
		put(t, dir, "images/a.png", photo(t, word))
		put(t, dir, "images/b.png", photo(t, word))
		put(t, dir, "labels/a.txt", "0 0.5 0.5 0.5 "+map[string]string{inside: "0.4", canary: "0.3"}[word])
		put(t, dir, "labels/b.txt", "0 0.5 0.5 0.5 "+map[string]string{inside: "0.4", canary: canary}[word])
	}},
	"maskfolder": {make: func(t testing.TB, dir, word string) {
		for _, name := range []string{"a", "b"} {
			put(t, dir, "images/"+name+".png", photo(t, word))
			put(t, dir, "masks/"+name+"_mask.png", photo(t, word))
		}
	}},
	"labelme": {make: func(t testing.TB, dir, word string) {
		for _, name := range []string{"a", "b"} {
			put(t, dir, "images/"+name+".png", photo(t, word))
			put(t, dir, "labels/"+name+".json", `{"imagePath": "../images/`+name+`.png", "imageHeight": 5, "imageWidth": 6, "shapes": [{"label": "dog", "points": [[`+map[string]string{inside: "1", canary: "2"}[word]+`, 1], [4, 3]], "shape_type": "rectangle"}]}`)
		}
	}},
}

// photo returns the file of an image of 6 by 5 pixels that ends with a word.
func photo(t testing.TB, word string) string { return picture(t, 6, 5) + word }

// writeStrange makes a dataset of two records.
func writeStrange(t testing.TB, dir, word string, create func(store.Schema) (store.Writer, error)) {
	t.Helper()
	require.NoError(t, os.RemoveAll(dir))
	schema := store.Schema{Fields: []store.Field{store.NewField("x", tensor.Uint8, 8)}}
	w, err := create(schema)
	require.NoError(t, err)
	defer w.Close()
	for range 2 {
		r := store.NewRecord(schema)
		r.Values[0] = []byte(word)
		require.NoError(t, w.Append(r))
	}
	if _, err := w.Commit(store.Info{}); err != nil {
		t.Fatal(err)
	}
}

// named returns the source of that name, of the kind of that name if it does not have another one.
func named(name string) aSource {
	s := strangeSources[name]
	s.opts.Kind = cmp.Or(s.opts.Kind, name)
	return s
}

// templates are the files of twins, by what makes them: datasets are synced to the disk when they are made.
var templates sync.Map

// twins makes a source in a folder, and one with the other word outside of it. It returns the names of all files and
// folders in the source.
func (s aSource) twins(t testing.TB, top string) (dir, outside string, names []string) {
	t.Helper()
	dir, outside = filepath.Join(top, "in", "data"), filepath.Join(top, "out", "data")
	for at, word := range map[string]string{dir: inside, outside: canary} {
		key := fmt.Sprintf("%p %s", s.make, word)
		files, ok := templates.Load(key)
		if !ok {
			s.make(t, at, word)
			templates.Store(key, foldertest.Files(t, at))
			continue
		}
		for name, text := range files.(map[string]string) {
			put(t, at, name, text)
		}
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && path != dir {
			var name string
			name, err = filepath.Rel(dir, path)
			names = append(names, name)
		}
		return err
	})
	require.NoError(t, err)
	return dir, outside, names
}

// said is all that a source says and has.
type said struct {
	values  map[string]bool
	classes map[string]bool
	text    string // messages
	failed  bool
	bad     int // samples
}

// read opens a source and reads all samples. What does not end in time fails the test.
func (s aSource) read(t testing.TB, dir string, outside bool) *said {
	t.Helper()
	done := make(chan *said, 1)
	go func() {
		out := &said{values: make(map[string]bool), classes: make(map[string]bool)}
		defer func() { done <- out }()
		opts := s.opts
		opts.Outside = outside
		opts.IsImage = func(head []byte) bool { return bytes.HasPrefix(head, []byte("\x89PNG")) }
		src, err := Open(t.Context(), filepath.Join(dir, s.path), opts)
		if err != nil {
			out.text, out.failed = err.Error(), true
			return
		}
		defer src.Close()
		info := src.Info()
		about, _ := json.Marshal(info)
		out.text += string(about)
		v := source.NewValues(len(info.Fields))
		for _, f := range info.Fields {
			for _, c := range f.Classes {
				out.classes[c] = true
			}
		}
		for sample, err := range src.Samples() {
			out.text += sample.Name
			if err == nil {
				err = sample.Data.Read(v)
			}
			if err != nil {
				out.text += err.Error()
				out.bad++
				continue
			}
			for i, f := range info.Fields {
				if info.Kind == "imagefolder" && f.Classes != nil {
					continue // numbers follow from which folders there are
				}
				name := strings.ReplaceAll(sample.Name, filepath.ToSlash(dir)+"/", "")
				out.values[fmt.Sprintf("%s %s %s %q", name, sample.Split, f.Name, v.Get(i))] = true
			}
		}
	}()
	select {
	case out := <-done:
		return out
	case <-time.After(20 * time.Second):
		t.Fatalf("%s: reading does not end", dir)
		return nil
	}
}

// foreign returns what is said and is not of the source as it was, "" for nothing. Reasons and names may differ.
func (s *said) foreign(good *said) string {
	for v := range s.values {
		if !good.values[v] {
			return "the value " + v
		}
	}
	for c := range s.classes {
		if !good.classes[c] {
			return "the class " + c
		}
	}
	if strings.Contains(s.text, canary) {
		return s.text
	}
	return ""
}

// Whatever is put in the place of any file or folder of any source, also while it is read: nothing from outside of the
// source is read or told, and nothing waits.
func TestStrangeFolders(t *testing.T) {
	made := 0
	for kind := range strangeSources {
		s := named(kind)
		t.Run(kind, func(t *testing.T) {
			dir, _, names := s.twins(t, t.TempDir())
			good := s.read(t, dir, false)
			if good.failed || good.bad > 0 || len(good.values) == 0 || good.foreign(good) != "" {
				t.Fatalf("the source as it is: %+v", good)
			}
			moved := 0
			for i, name := range names { // each file and folder as a link once, with --outside and without
				for _, outside := range []bool{false, true} {
					dir, out, _ := s.twins(t, t.TempDir())
					foldertest.Strange(t, "link", filepath.Join(dir, name), filepath.Join(out, name))
					got := s.read(t, dir, outside)
					what := got.foreign(good)
					if outside && what != "" {
						moved++
					}
					if !outside && what != "" && name != s.path {
						t.Errorf("%s is a link: %s", name, what)
					}
				}
				made += 2
				for k := i; k < len(foldertest.StrangeWays); k += len(names) { // and each way at some file
					made++
					s.tamper(t, good, name, foldertest.StrangeWays[k], uint64(k))
				}
			}
			if moved == 0 && !s.summed {
				t.Error("no link is followed with Outside: this test shows nothing")
			}
		})
	}
	rng := rand.New(rand.NewPCG(5, 6))
	kinds := make([]string, 0, len(strangeSources))
	for k := range strangeSources {
		kinds = append(kinds, k)
	}
	for ; made < *strangeFolders; made++ {
		kind := kinds[rng.IntN(len(kinds))]
		s := named(kind)
		dir, _, names := s.twins(t, t.TempDir())
		good := s.read(t, dir, false)
		name, how := names[rng.IntN(len(names))], foldertest.StrangeWays[rng.IntN(len(foldertest.StrangeWays))]
		if !s.tamper(t, good, name, how, rng.Uint64()) {
			t.Errorf("of kind %s", kind)
		}
	}
	t.Logf("%d folders", made)
}

// tamper puts something in the place of a file, and reads the source.
func (s aSource) tamper(t *testing.T, good *said, name, how string, seed uint64) bool {
	t.Helper()
	top := t.TempDir()
	dir, out, _ := s.twins(t, top)
	path := filepath.Join(dir, name)
	if name == s.path { // what the user names: its links are followed
		return true
	}
	rounds := 1
	if how == "swap" {
		link := filepath.Join(top, "link")
		require.NoError(t, os.Symlink(filepath.Join(out, name), link))
		stop := foldertest.Exchange(t, path, link, seed)
		defer stop()
		rounds = 5
	} else if !foldertest.Strange(t, how, path, filepath.Join(out, name)) {
		return true
	}
	for range rounds {
		if what := s.read(t, dir, false).foreign(good); what != "" {
			t.Errorf("%s in the place of %s: %s", how, name, what)
			return false
		}
		detected := s
		detected.opts.Kind = "" // which may be another kind now, with other values
		if got := detected.read(t, dir, false); strings.Contains(fmt.Sprint(got), canary) {
			t.Errorf("%s in the place of %s, without a kind: %+v", how, name, got)
			return false
		}
	}
	return true
}

// A source in the cache of the Hugging Face Hub is links to the folder blobs next to its snapshots. They are followed,
// and others are not.
func TestHubCaches(t *testing.T) {
	for _, kind := range []string{"parquet", "imagefolder", "csv", "jsonl", "mds", "tokens", "flat", "coco file"} {
		s := named(kind)
		for _, owner := range []string{"datasets--org--name", "elsewhere"} {
			top := t.TempDir()
			plain, out, names := s.twins(t, top)
			repository := filepath.Join(top, owner)
			snapshot := filepath.Join(repository, "snapshots", "0123abcd")
			for i, name := range names {
				data, err := os.ReadFile(filepath.Join(plain, name))
				if errors.Is(err, unix.EISDIR) {
					continue
				}
				require.NoError(t, err)
				blob := fmt.Sprintf("blobs/%040d", i)
				put(t, repository, blob, string(data))
				path := filepath.Join(snapshot, name)
				rel, _ := filepath.Rel(filepath.Dir(path), filepath.Join(repository, blob))
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
				require.NoError(t, os.Symlink(rel, path))
			}
			good, got := s.read(t, plain, false), s.read(t, snapshot, false)
			read := !got.failed && got.bad == 0 && len(got.values) == len(good.values) && got.foreign(good) == ""
			if hub := owner != "elsewhere"; hub != read {
				t.Errorf("%s in %s: %+v, want %v", kind, owner, got, hub)
			}
			for _, name := range names {
				if info, err := os.Stat(filepath.Join(snapshot, name)); err == nil && !info.IsDir() && name != s.path {
					foldertest.Strange(t, "link", filepath.Join(snapshot, name), filepath.Join(out, name))
				}
			}
			if what := s.read(t, snapshot, false).foreign(good); what != "" {
				t.Errorf("%s in %s: %s", kind, owner, what)
			}
		}
	}
}

// A folder that the user names by a link is the one that the link leads to, and absolute links and paths within it are
// followed, also by that name.
func TestNamedByLink(t *testing.T) {
	top := t.TempDir()
	put(t, top, "real/cat/a.png", photo(t, inside))
	link := filepath.Join(top, "named")
	err := os.Symlink("real", link)
	for _, base := range []string{link, filepath.Join(top, "real")} {
		if err == nil {
			err = os.Symlink(filepath.Join(base, "cat/a.png"), filepath.Join(top, "real/cat", filepath.Base(base)+".png"))
		}
	}
	require.NoError(t, err)
	for _, dir := range []string{link, link + "/", filepath.Join(top, "real"), filepath.Join(top, "real", "..", "named")} {
		got := aSource{}.read(t, dir, false)
		if got.failed || got.bad > 0 || len(got.values) != 3 {
			t.Errorf("%s: %+v", dir, got)
		}
	}
	t.Chdir(filepath.Join(top, "real"))
	if got := (aSource{}).read(t, ".", false); got.bad > 0 || len(got.values) != 3 {
		t.Errorf("%+v", got)
	}
}

// What is read as a whole has a limit.
func TestLargeDescriptions(t *testing.T) {
	for kind, name := range map[string]string{"yolo": "data.yaml", "yolo folder": "classes.txt", "voc": "Annotations/a.xml", "labelme": "labels/a.json", "cifar": "batches.meta.txt"} {
		s := named(kind)
		dir, _, _ := s.twins(t, t.TempDir())
		if err := os.Truncate(filepath.Join(dir, name), 100<<30); err != nil {
			t.Skip(err)
		}
		if got := s.read(t, dir, false); !got.failed && got.bad == 0 || !strings.Contains(got.text, "more than") {
			t.Errorf("%s: %s of 100 GiB: %.300s", kind, name, got.text)
		}
	}
}

// Every open of a source is one of a Root, whose error says what to do.
func TestOutsideIsTold(t *testing.T) {
	dir, out, _ := strangeSources["tokens"].twins(t, t.TempDir())
	foldertest.Strange(t, "link", filepath.Join(dir, "gpt.bin"), filepath.Join(out, "gpt.bin"))
	_, err := Open(t.Context(), filepath.Join(dir, "gpt.idx"), source.Options{})
	if err == nil || !strings.Contains(err.Error(), `link "gpt.bin"`) || !strings.Contains(err.Error(), vfs.ErrOutside.Error()) {
		t.Error(err)
	}
}

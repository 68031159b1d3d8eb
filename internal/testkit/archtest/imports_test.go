package archtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/penstock/penstock"

// layers are the packages of the module from the bottom up. A package imports only what is
// in a layer below its own. "x/..." is every package below x that has no row of its own, or nearer to it.
var layers = [][]place{
	{
		{"internal/testkit/require", "ends tests at errors, whatever they are"},
	},
	{
		{"tensor", "every package uses types, shapes and views, so they depend on none"},
		{"internal/invariants", "a constant that switches checks on; every package may ask for it"},
		{"loader/internal/digest", "short names of parameters, whatever they are of"},
		{"loader/internal/memory", "buffers of batches, whatever is in them: numbers of slots and fields, and sizes"},
		{"internal/sys/rank", "who a process is among others, as its launcher says"},
		{"internal/vfs", "files by path, wherever they are; it knows no place but the system's"},
		{"internal/sys/shell", "words of command lines, whatever they name, and those that nobody else may read"},
		{"internal/suggest", "names that were mistyped, wherever"},
		{"loader/bottleneck", "names of what limits a loop, however that is found"},
		{"internal/units", "numbers and sizes as text, whatever they count"},
		{"internal/version", "which version a program is, whatever it does"},
		{"prepare/internal/samples", "contents, splits and lists of samples, whatever these are"},
		{"internal/testkit/guardpage", "memory next to pages that fault, for tests of kernels, whatever these compute"},
		{"internal/sys/usage", "CPU time, memory and disk space of this process"},
		{"internal/testkit/smalldisk", "mounts small file systems, for tests, whatever fills them"},
		{"internal/testkit/foldertest", "reads folders, for tests, whatever is in them"},
		{"internal/testkit/pythontest", "finds Pythons, for tests, whatever these ask them"},
		{"internal/testkit/commands", "builds the commands, for tests, whatever these do with them"},
		{"internal/testkit/browser", "opens pages, for tests, and knows nothing of what is on them"},
		{"internal/sys/private", "folders that no other user can turn into something else, whatever is in them"},
		{"remote", "objects of a store, whatever they are; it speaks no protocol and needs the standard library only"},
	},
	{
		{"internal/testkit/membucket", "a bucket in memory, for tests of all that read and write buckets"},
	},
	{
		{"internal/testkit/crash", "records what a program does to files, for tests, whatever is in them"},
		{"internal/testkit/h5test", "asks h5py, for tests of every package that reads or writes HDF5"},
		{"internal/requests", "requests to a bucket that are repeated, whatever they are for"},
		{"internal/testkit/hostilebucket", "a bucket that answers wrongly, for tests of all that read and write buckets"},
		{"remote/web", "files of web servers as package remote's Bucket; it needs the standard library only"},
		{"remote/hdfs", "files of a Hadoop cluster as package remote's Bucket"},
		{"internal/testkit/hdfscluster", "a real HDFS, for tests; it asks Hadoop's own programs"},
		{"internal/testkit/webtest", "web servers for tests of all that read by HTTP"},
		{"loader/mlock", "page-locked memory for batches, whatever is in it"},
		{"internal/staged", "records that are made elsewhere, several at a time, for any caller"},
		{"loader/internal/padding", "elements to fill up records with, for loader and loader/combine"},
		{"internal/block", "values of several records at a time, whatever has them"},
		{"internal/subset", "which number the i-th member of a set is, whatever is numbered"},
		{"internal/npy", "headers of .npy files, whatever is in these"},
		{"internal/kernel", "kernels over slices; decode and transforms both need them"},
		{"internal/codec/filter", "what filters of chunks compute, over slices"},
		{"internal/sys/mmap", "maps files, whatever is in them"},
		{"internal/sys/lease", "locks of open files, whatever is in them"},
		{"internal/chart", "bars as SVG, whatever they are of"},
		{"cmd/internal/cli", "terminal, flags and exit codes know nothing of datasets"},
	},
	{
		{"internal/pixel", "what images are, to those who decode them and to those who transform them"},
		{"internal/imagefile/tiff", "TIFF files to samples; decoders of other formats in them are given to it"},
		{"internal/codec/stream", "blocks of compression libraries, whatever is in them"},
	},
	{
		{"internal/codec/blosc", "chunks of blosc, whatever file they are in"},
		{"internal/imagefile/format", "names, headers and errors of image files, for the decoders of all formats"},
	},
	{
		{"internal/hdf5/meta", "says where bytes are in an HDF5 file, and reads none of the records"},
	},
	{
		{"remote/cloud", "the SDKs of the clouds as package remote's Bucket"},
		{"internal/moments", "sums of numbers, whatever they are of"},
		{"internal/imagefile/jpeg", "JPEG files to pixels, as far as they are asked for"},
		{"internal/hdf5/chunk", "chunks of HDF5 files out of their filters, wherever they go"},
	},
	{
		{"internal/zarr", "arrays of Zarr, wherever their files are; chunk reads them as it does those of HDF5"},
	},
	{
		{"internal/layout", "where the bytes of a dataset are; package store says what they mean"},
	},
	{
		{"internal/digest", "checksums and statistics of records on their way into a dataset; package store computes them"},
	},
	{
		{"internal/permute", "random permutations of numbers, whatever is shuffled by them"},
		{"transforms", "sample to sample: no files, no formats"},
		{"internal/imagefile", "image files to the pixels that transforms work on, in one pass"},
		{"store", "what a dataset is, and what a writer takes; it must not know who fills datasets or who maps them"},
		{"internal/hdf5/encode", "metadata and chunks of HDF5 files, wherever they come from"},
	},
	{
		{"transforms/geometry", "what pipelines do to places, which fields lie on images, and how these move"},
		{"store/hdf5/seal", "a checksum of an HDF5 file's content besides the columns that store finds in it"},
		{"internal/vfs/bucketfs", "a bucket as a file system, whatever is in it"},
		{"prepare/source", "raw samples are names and values, described as store describes fields; images in them are for decode"},
		{"store/write", "how datasets come to be, whatever container they end in"},
		{"loader/sampler", "orders of record numbers; it knows no Source"},
		{"mmapds", "store says where records are, mmapds maps them"},
	},
	{
		{"loader/internal/order", "record numbers of the steps of an epoch; it knows no Source"},
		{"prepare/source/column", "cells of tables to values, for tables, archives and Parquet"},
		{"store/hdf5/view", "HDF5 metadata over the files of a dataset; no libhdf5"},
	},
	{
		{"loader/internal/schedule", "which worker makes which step in which slot, whatever is in it"},
		{"loader/internal/fill", "a batch of record numbers out of a Source, in the order of any caller"},
		{"prepare/source/array", "one kind of source, and arrays for cifar, dataset and archive; --fields selects among them"},
		{"prepare/source/rows", "files of rows that know their types, whatever the format"},
	},
	{
		{"loader", "streams any Source, and decodes images on the way; it and mmapds do not know each other, so that either can be replaced"},
		{"prepare/source/unit", "records that are groups or files, or rows of these, for every kind of source whose arrays are in such"},
	},
	{
		{"prepare/source/cells", "records that are single cells, in whatever format their groups and arrays are"},
	},
	{
		{"prepare/source/hdf5", "one kind of source, as arrays: files that other programs wrote"},
		{"loader/expr", "the language of expressions: records of a Source for which one holds, and numbers that one computes; views and commands ask it"},
	},
	{
		{"loader/combine", "Sources of slices and functions, and of other Sources"},
		{"prepare/source/arrow", "one kind of source, as rows; the only package that knows the format"},
		{"prepare/source/dataset", "one kind of source, as arrays"},
	},
	{
		{"loader/views", "datasets that a few lines of JSON name, as one Source; it joins loader and mmapds"},
		{"prepare/source/...", "a kind of source; it shares nothing with others"},
	},
	{
		{"prepare/source/kinds", "opens every kind of source, views included"},
	},
	{
		{"store/write/bucket", "commits of datasets in a bucket, whatever is changed"},
		{"store/flat", "the container of .npy files"},
		{"store/verify", "datasets and their checksums, whichever program made them; it maps nothing"},
		{"store/hdf5", "the only package that can use libhdf5"},
		{"store/zarr", "the container of Zarr"},
		{"remote/mirror", "a dataset in a bucket as a local one of mmapds; a Source of the loader, which it does not know"},
	},
	{
		{"store/edit", "generations of datasets: columns that are added, set, dropped and renamed"},
	},
	{
		{"store/hdf5/rewrite", "changes of an HDF5 file, as a new one beside it"},
	},
	{
		{"internal/testkit/farbucket", "a bucket behind a slow link, for tests of all that counts round trips"},
		{"internal/testkit/rawtest", "raw samples, for tests of all that prepares datasets"},
		{"internal/testkit/datasettest", "small datasets, for tests of every package that reads them"},
		{"internal/testkit/corruption", "corrupts datasets, for tests of every format that mmapds opens"},
		{"cmd/internal/inspect/dataset", "opens what inspect looks at, and reads values"},
	},
	{
		{"prepare/internal/execute/field", "values of samples to values of records"},
		{"prepare/internal/commit/part", "what a rank makes, and a merge reads"},
	},
	{
		{"prepare/internal/execute", "samples to records, by any number of workers, in order; parts have samples that are done"},
		{"prepare/internal/commit/upload", "datasets and parts into buckets, while they are made"},
	},
	{
		{"prepare/rechunk", "arrays into Zarr with other chunks, in bounded memory"},
		{"prepare/raw", "raw samples as a Source of the loader, which it does not know; it needs no C, as writers of HDF5 files do"},
	},
	{
		{"cmd/internal/rawcache", "datasets of raw samples in the user's cache folder, which a program of its own makes"},
	},
	{
		{"cmd/internal/datasetarg", "lets commands take URLs, views and raw samples"},
	},
	{
		{"cmd/internal/inspect/render", "records as pictures, and masks, boxes and keypoints over these"},
	},
	{
		{"cmd/internal/inspect/...", "a subcommand of inspect"},
	},
	{
		{"prepare", "a source and options to a dataset: joins source, decode, transforms and a writer"},
	},
	{
		{"loader/cuda", "a Device of the loader, on a driver that is opened at run time: no C"},
		{"cmd/internal/inspect/report", "a page of what the other subcommands find"},
	},
	{
		{"cmd/internal/...", "a command, of which no other knows"},
	},
	{
		{"cmd/internal/feed", "hands the loader's batches to another process, sources built from sources too"},
	},
	{
		{"cmd/internal/penstock", "the tree of all commands, and what rawcache keeps"},
	},
	{
		{"cmd/internal/man", "writes manual pages of the tree of commands"},
		{"cmd/internal/preprocess/many", "the command for thousands of small sources in one process, for tests"},
		{"cmd/...", "one line of main"},
		{"examples/train/internal/cnn", "the user's side: a network, which knows nothing of datasets"},
	},
	{
		{"examples/train", "the user's side: uses what users can use"},
	},
}

type place struct{ path, why string }

// only says which packages of the module alone may import something; "x/..." is every package below x.
// With nil, none may.
var only = map[string][]string{
	"gonum.org/v1/hdf5":                 {"store/hdf5"},
	"github.com/edsrzf/mmap-go":         {"internal/sys/mmap"},
	"github.com/spf13/cobra":            {"cmd/internal/..."},
	"github.com/schollz/progressbar/v3": {"cmd/internal/cli"},
	"github.com/parquet-go/parquet-go":  {"prepare/source/parquet"},
	"go.yaml.in/yaml/v3":                {"cmd/internal/preprocess", "cmd/internal/inspect/preview", "prepare/source/labels"},
	"gocloud.dev/blob":                  {"remote/cloud"},
	"gocloud.dev/blob/s3blob":           {"remote/cloud"},
	"gocloud.dev/blob/gcsblob":          {"remote/cloud"},
	"gocloud.dev/blob/azureblob":        {"remote/cloud"},
	"gocloud.dev/blob/fileblob":         {"remote/cloud"},
	"html/template":                     nil, // finds methods by name, so that the linker keeps those of all types: 14 MB
	"text/template":                     nil,
	"github.com/colinmarc/hdfs/v2":      {"remote/hdfs"},
	module + "/remote/hdfs":             {"remote/cloud"},
	module + "/remote/cloud": {"cmd/internal/doctor", "cmd/internal/datasetarg",
		"prepare/internal/commit/upload"},
	module + "/cmd/internal/cli": {"cmd/..."},
}

// public lists the packages that users' programs import, and all modules that they bring
// with them. A program that imports a loader gets no more than these. None needs C.
var public = map[string][]string{
	"tensor":         nil,
	"transforms":     {"github.com/disintegration/imaging", "golang.org/x/image", "golang.org/x/sys"},
	"store":          {"github.com/klauspost/compress", "github.com/pierrec/lz4/v4", "golang.org/x/sys"},
	"store/flat":     {"github.com/klauspost/compress", "github.com/pierrec/lz4/v4", "golang.org/x/sync", "golang.org/x/sys"},
	"store/zarr":     {"github.com/klauspost/compress", "github.com/pierrec/lz4/v4", "golang.org/x/sync", "golang.org/x/sys"},
	"loader/sampler": {"golang.org/x/sys"},
	"loader/views": {"github.com/disintegration/imaging", "github.com/edsrzf/mmap-go", "github.com/klauspost/compress", "github.com/pierrec/lz4/v4",
		"golang.org/x/image", "golang.org/x/sys"},
	"loader/expr":    {"github.com/disintegration/imaging", "golang.org/x/image", "golang.org/x/sys"},
	"loader/combine": {"github.com/disintegration/imaging", "golang.org/x/image", "golang.org/x/sys"},
	"loader":         {"github.com/disintegration/imaging", "golang.org/x/image", "golang.org/x/sys"},
	"remote":         nil,
	"remote/mirror":  {"github.com/edsrzf/mmap-go", "github.com/klauspost/compress", "github.com/pierrec/lz4/v4", "golang.org/x/sync", "golang.org/x/sys"},
	"mmapds":         {"github.com/edsrzf/mmap-go", "github.com/klauspost/compress", "github.com/pierrec/lz4/v4", "golang.org/x/sys"},
}

// builds are the variants of the module, as what each adds to the command and environment.
var builds = map[string]struct{ tags, env []string }{
	"default":  {nil, []string{"CGO_ENABLED=1"}},
	"tags":     {[]string{"-tags", "invariants,purego"}, []string{"CGO_ENABLED=1"}},
	"no cgo":   {nil, []string{"CGO_ENABLED=0"}},
	"windows":  {nil, []string{"CGO_ENABLED=0", "GOOS=windows"}},
	"mac, arm": {nil, []string{"CGO_ENABLED=0", "GOOS=darwin", "GOARCH=arm64"}},
}

// listed is a package in the output of "go list".
type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
	CgoFiles   []string
	Standard   bool
	Module     *struct{ Path string }
}

// lists are the results of list, which take a second each.
var lists = make(map[string]map[string]listed)

// list returns all packages of the module, tests aside, and all that they need.
func list(t *testing.T, tags, env []string) map[string]listed {
	t.Helper()
	key := fmt.Sprint(tags, env)
	if lists[key] == nil {
		lists[key] = goList(t, tags, env)
	}
	return lists[key]
}

func goList(t *testing.T, tags, env []string) map[string]listed {
	t.Helper()
	args := append([]string{"list", "-e", "-deps", "-json=ImportPath,Imports,Deps,CgoFiles,Standard,Module"}, tags...)
	cmd := exec.Command("go", append(args, module+"/...")...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal("go list: ", err)
	}
	packages := make(map[string]listed)
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal("go list: ", err)
		}
		packages[p.ImportPath] = p
	}
}

// eachBuild runs a test on the packages of every variant.
func eachBuild(t *testing.T, test func(t *testing.T, packages map[string]listed)) {
	for name, b := range builds {
		t.Run(name, func(t *testing.T) { test(t, list(t, b.tags, b.env)) })
	}
}

// inside returns the path of a package within the module.
func inside(path string) (string, bool) {
	return strings.CutPrefix(path, module+"/")
}

func TestImportsGoDown(t *testing.T) {
	eachBuild(t, func(t *testing.T, packages map[string]listed) {
		for path, p := range packages {
			from, ok := inside(path)
			if !ok || from == "internal/testkit/archtest" || from == "docs" { // tests only
				continue
			}
			at, row := rowOf(from)
			if row == "" {
				t.Errorf("%s is in no layer: give it a place, and a reason", from)
			}
			for _, path := range p.Imports {
				to, ok := inside(path)
				if below, _ := rowOf(to); ok && row != "" && below >= at {
					t.Errorf("%s imports %s, which is not below it", from, to)
				}
			}
		}
	})
}

// rowOf returns the layer of a package, and its row in the layers: its own, or that of the nearest folder; "" without one.
func rowOf(path string) (at int, row string) {
	for i, layer := range layers {
		for _, p := range layer {
			if within(path, p.path) && len(strings.TrimSuffix(p.path, "...")) > len(strings.TrimSuffix(row, "...")) {
				at, row = i, p.path
			}
		}
	}
	return at, row
}

// within reports whether a package is the one named, or below it if the name ends in "/...".
func within(path, name string) bool {
	above, all := strings.CutSuffix(name, "...")
	return path == name || all && strings.HasPrefix(path, above)
}

func TestImportedByFewOnly(t *testing.T) {
	eachBuild(t, func(t *testing.T, packages map[string]listed) {
		for path, p := range packages {
			from, ok := inside(path)
			if !ok {
				continue
			}
			for _, to := range p.Imports {
				if allowed, special := only[to]; special &&
					!slices.ContainsFunc(allowed, func(a string) bool { return within(from, a) }) {
					t.Errorf("%s imports %s; only %v may", from, to, allowed)
				}
			}
		}
	})
}

func TestPublicPackagesBringLittle(t *testing.T) {
	eachBuild(t, func(t *testing.T, packages map[string]listed) {
		for path, allowed := range public {
			p, ok := packages[module+"/"+path]
			if !ok {
				t.Errorf("there is no package %s", path)
			}
			for _, name := range append(p.Deps, p.ImportPath) {
				checkDependency(t, path, packages[name], allowed)
			}
		}
	})
}

func checkDependency(t *testing.T, from string, dep listed, allowed []string) {
	if dep.Standard {
		return
	}
	if len(dep.CgoFiles) > 0 {
		t.Errorf("%s needs C: %s has %v", from, dep.ImportPath, dep.CgoFiles)
	}
	if dep.Module != nil && dep.Module.Path != module && !slices.Contains(allowed, dep.Module.Path) {
		t.Errorf("%s needs %s of module %s; allowed are %v", from, dep.ImportPath, dep.Module.Path, allowed)
	}
}

// Every place in the table must be that of a package, and give a reason.
func TestLayersAreTrue(t *testing.T) {
	used, seen := make(map[string]bool), make(map[string]bool)
	for path := range list(t, nil, []string{"CGO_ENABLED=1"}) {
		if of, ok := inside(path); ok {
			_, row := rowOf(of)
			used[row] = true
		}
	}
	for _, layer := range layers {
		for _, p := range layer {
			if !used[p.path] {
				t.Errorf("%s is in the layers, but not in the module", p.path)
			}
			if seen[p.path] || p.why == "" {
				t.Errorf("%s occurs twice, or without a reason", p.path)
			}
			seen[p.path] = true
		}
	}
}

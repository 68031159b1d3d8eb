package preprocess

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/penstock/penstock/internal/units"
	"github.com/penstock/penstock/prepare"
)

// compressFlags holds the flags of compression as text.
type compressFlags struct{ compress, chunkRecords, chunkBytes, shuffle string }

// compressNames lists the names of the flags, which are also their names in a recipe.
var compressNames = []string{"compress", "chunk-records", "chunk-bytes", "shuffle-bytes"}

// parse returns the compression that the flags ask for, and adds their problems to p. zlib has
// the levels 1 to 9, and zstd 1 to 22.
func (f *compressFlags) parse(p *problems) (c prepare.Compress) {
	method, level, hasLevel := strings.Cut(f.compress, ":")
	var err error
	if most := map[string]int{"gzip": 9, "zstd": 22}[method]; most > 0 {
		c.Method = prepare.Method(method)
		if hasLevel {
			if c.Level, err = strconv.Atoi(level); err != nil || c.Level < 1 || c.Level > most {
				err = fmt.Errorf("the level must be from 1 to %d", most)
			}
		}
	} else if f.compress != "none" {
		err = errors.New("must be none, gzip, gzip:1 to gzip:9, zstd, or zstd:1 to zstd:22")
	}
	p.add("compress", f.compress, err)
	c.ChunkRecords = f.positive(p, "chunk-records", f.chunkRecords, func(s string) (int64, error) {
		return strconv.ParseInt(s, 10, 64)
	})
	c.ChunkBytes = f.positive(p, "chunk-bytes", f.chunkBytes, units.ParseBytes)
	if f.shuffle != "auto" {
		c.Shuffle = f.shuffle
	}
	return c
}

// positive parses a number above 0; "" is 0, the default.
func (f *compressFlags) positive(p *problems, name, text string, parse func(string) (int64, error)) int64 {
	if text == "" {
		return 0
	}
	n, err := parse(text)
	if err != nil || n < 1 {
		p.add(name, text, errors.New("must be a whole number above 0"))
		return 0
	}
	return n
}

// forget resets the compression that a recipe asks for if it cannot apply: another format has
// another method or none, and an append stores records like the records before them. Flags on the
// command line are never reset; a flag that cannot apply is an error later.
func (f *compressFlags) forget(fs *pflag.FlagSet, c *prepare.Config) {
	method, _, _ := strings.Cut(f.compress, ":")
	if string(prepare.Methods[c.DatasetFormat()]) == method && !c.Append ||
		slices.ContainsFunc(compressNames, fs.Changed) {
		return
	}
	*f = compressFlags{compress: "none", shuffle: "auto"}
}

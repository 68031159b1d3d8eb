package column

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/tensor"
)

// Cell is one value of a table.
type Cell struct {
	Text   string
	Quoted bool // text by the rules of its format, not a number
}

func (c Cell) Missing() bool { return c.Text == "" && !c.Quoted }

// absent are words for a missing value in a column of numbers: some of the words that pandas takes for one. NaN is a
// number.
var absent = []string{"NA", "N/A", "n/a", "<NA>", "#N/A", "#NA", "NULL", "null", "None"}

func isAbsent(word string) bool {
	return len(word) >= 2 && len(word) <= 4 && strings.IndexByte("Nn<#", word[0]) >= 0 && slices.Contains(absent, word)
}

// blanks are the characters that may surround a number.
const blanks = " \t\r\n"

// Trimmed returns text without blanks around it.
func Trimmed(text string) string {
	if n := len(text); n > 0 && text[0] > ' ' && text[n-1] > ' ' {
		return text
	}
	return strings.Trim(text, blanks)
}

// Guess finds the type of a column out of all its cells.
type Guess struct {
	seen                         bool // there is a cell that is not missing
	numbers                      bool // there is a number
	notInt, notFloat, notImage   bool
	notWhole, notUint            bool // of any size; of 64 bits without a sign
	notBool                      bool
	notImages, images            bool // not JSON arrays of names of images; one of them has some
	notList, isList, listsDiffer bool
	floats                       bool // the lists hold others than whole numbers
	// float32 does not hold some number: it is too large, too small, or an integer beyond 2^24
	wide    bool
	inexact bool  // float64 does not hold some integer
	words   bool  // the lists are numbers with blanks between
	dims    []int // of the first list
	scratch []byte
}

// Add takes one more cell into account. Types are only ever ruled out, so the result does not depend on the order of
// cells, and the guesses of several goroutines can be merged.
func (g *Guess) Add(c Cell) {
	if c.Missing() {
		return
	}
	if word := Trimmed(c.Text); !c.Quoted && (word == "" || isAbsent(word)) {
		return
	}
	g.seen = true
	g.notImage = g.notImage || !source.IsImageName(c.Text)
	g.addImages(c)
	if c.Quoted {
		g.notInt, g.notFloat, g.notList, g.notWhole, g.notBool = true, true, true, true, true
		return
	}
	c.Text = Trimmed(c.Text)
	g.notBool = g.notBool || !isBool(c.Text)
	kind, whole := plain(c.Text)
	g.numbers = g.numbers || kind != notPlain
	if kind != notPlain && (g.notList || g.isList && g.words && slices.Equal(g.dims, []int{1})) {
		if whole > sureWhole {
			g.addSize(c.Text)
		}
		g.notUint = g.notUint || kind == plainFraction || c.Text[0] == '-'
		if kind == plainFraction {
			g.notInt, g.notWhole, g.floats = true, true, true
		}
		return
	}
	g.addWhole(c.Text)
	if !g.notFloat || !g.numbers && strings.IndexByte("0123456789+-.iInN", c.Text[0]) >= 0 {
		x, err := parseFloat(c.Text, 64)
		g.notFloat, g.numbers = g.notFloat || err != nil, g.numbers || err == nil
		if err == nil {
			g.addFloat(c.Text, x)
		}
	}
	if !g.notList {
		g.addList(c.Text)
	}
}

// KnowsText reports whether Add would change nothing for this cell: the column is known to have texts or names of
// classes, and the cell cannot be a number. It is the fast path of long columns, and looks at one byte.
func (g *Guess) KnowsText(c Cell) bool {
	if !(g.seen && g.notInt && g.notFloat && g.notImage && g.notImages && g.notWhole && g.notUint && g.notBool && g.notList) {
		return false
	}
	return g.numbers || c.Quoted || c.Text == "" || c.Text[0] > '9' || c.Text[0] > ' ' && c.Text[0] < '+'
}

// addSize finds out which floating-point types hold a number exactly enough.
func (g *Guess) addSize(word string) {
	const exact = 15 // digits that every float64 holds
	if g.wide && (g.inexact || len(word) <= exact) {
		return
	}
	if x, err := parseFloat(word, 64); err == nil {
		g.addFloat(word, x)
	}
}

// addFloat is addSize for a word whose float64 is known.
func (g *Guess) addFloat(word string, x float64) {
	x = math.Abs(x)
	if math.IsInf(x, 0) {
		return
	}
	g.wide = g.wide || x > 1<<24 || x != 0 && x < 0x1p-126
	if x >= 1<<53 && !g.inexact {
		digits := strings.TrimLeft(strings.TrimLeft(word, "+-"), "0")
		g.inexact = isDigits(digits) && strconv.FormatFloat(x, 'f', 0, 64) != digits
	}
}

func isDigits(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

// plainKind classifies a cell by its characters.
type plainKind uint8

const (
	notPlain      plainKind = iota
	plainWhole              // digits that fit into 64 bits with or without a sign
	plainFraction           // digits and a point, or an exponent, that float64 holds
)

// Limits up to which a cell can be classified by its length. Longer cells are parsed completely. A shorter fraction
// without an exponent is at least 1e-22, which float32 holds.
const (
	sureWhole    = 7  // characters before the point that need no look at the size: such numbers are below 2^24
	mostWhole    = 18 // digits of any int64
	mostFraction = 25 // a float64 with all its digits: -0.00012345678901234567
)

// plain recognizes the two kinds of numbers that nearly all cells are, and returns how many characters are before the
// point. For a number with an exponent it returns so many that its size is looked at.
func plain(text string) (kind plainKind, whole int) {
	kind, whole = plainWhole, len(text)
	if text == "" || len(text) > mostFraction || text[len(text)-1] == '.' {
		return notPlain, 0
	}
scan:
	for i := range len(text) {
		switch c := text[i]; {
		case c == '0' && i+1 < len(text) && text[i+1] != '.' && (i == 0 || i == 1 && text[0] == '-'): // 007
			return notPlain, 0
		case c >= '0' && c <= '9':
		case c == '.' && kind == plainWhole && i > 0 && text[i-1] != '-':
			if kind, whole = plainFraction, i; allDigits(text[i+1:]) {
				break scan
			}
		case c == '-' && i == 0 && len(text) > 1:
		case (c == 'e' || c == 'E') && i > 0 && text[i-1] >= '0' && text[i-1] <= '9' && isExponent(text[i+1:]):
			return plainFraction, mostFraction
		default:
			return notPlain, 0
		}
	}
	if whole > mostWhole {
		return notPlain, 0
	}
	return kind, whole
}

// isExponent reports whether text is an exponent of at most two digits, which every float64 has room for.
func isExponent(text string) bool {
	if text != "" && (text[0] == '-' || text[0] == '+') {
		text = text[1:]
	}
	return (len(text) == 1 || len(text) == 2) && isDigits(text)
}

// Merge adds the cells of another guess, which come after the cells of g.
func (g *Guess) Merge(o *Guess) {
	isList, dims := g.isList, g.dims
	g.seen, g.numbers = g.seen || o.seen, g.numbers || o.numbers
	g.notInt, g.notFloat, g.notImage = g.notInt || o.notInt, g.notFloat || o.notFloat, g.notImage || o.notImage
	g.notImages, g.images = g.notImages || o.notImages, g.images || o.images
	g.notWhole, g.notUint, g.notBool = g.notWhole || o.notWhole, g.notUint || o.notUint, g.notBool || o.notBool
	g.notList, g.listsDiffer, g.floats = g.notList || o.notList, g.listsDiffer || o.listsDiffer, g.floats || o.floats
	g.wide, g.inexact = g.wide || o.wide, g.inexact || o.inexact
	if !o.isList {
		return
	}
	g.isList = true
	switch {
	case !isList:
		g.dims, g.words = o.dims, o.words
	case g.words != o.words:
		g.notList = true
	default:
		g.dims = dims
		g.addDims(o.dims)
	}
}

// Numbers reports whether some cells are numbers, and Words whether some are not.
func (g *Guess) Numbers() bool { return g.numbers }
func (g *Guess) Words() bool   { return g.notFloat }

// Inexact reports whether the column has integers and other numbers, and float64 cannot hold some of the integers
// exactly. Such integers are identifiers, and a conversion to floats would merge some of them.
func (g *Guess) Inexact() bool {
	return g.inexact && g.notWhole && !g.notFloat || g.inexact && !g.notList && g.isList && g.floats
}

// Float returns the floating-point type that holds all numbers: float32 if that does, otherwise float64.
func (g *Guess) Float() tensor.DType {
	if g.wide {
		return tensor.Float64
	}
	return tensor.Float32
}

// isBool reports whether a word stands for true or false.
func isBool(text string) bool {
	return slices.Contains([]string{"true", "True", "TRUE", "false", "False", "FALSE"}, text)
}

// addImages finds out whether a cell is a list of names of images.
func (g *Guess) addImages(c Cell) {
	if g.notImages {
		return
	}
	if g.notImages = c.Quoted || c.Text[0] != '['; g.notImages {
		return
	}
	list, err := pathList([]byte(c.Text))
	named := !slices.ContainsFunc(list, func(name string) bool { return !source.IsImageName(name) })
	g.notImages, g.images = err != nil || !named, g.images || len(list) > 0
}

// addWhole finds out whether a whole number fits into 64 bits. One that does not is taken for an identifier: no float
// has all its digits.
func (g *Guess) addWhole(text string) {
	if g.notWhole {
		return
	}
	_, err := strconv.ParseInt(text, 10, 64)
	g.notInt = g.notInt || err != nil
	g.notWhole = err != nil && !errors.Is(err, strconv.ErrRange)
	if !g.notUint {
		_, err = strconv.ParseUint(strings.TrimPrefix(text, "+"), 10, 64)
		g.notUint = err != nil
	}
}

// addList looks at a cell as a list of numbers. It tries integers first: as floats, numbers above 2^53 would change. A
// column is a list only if all its cells are lists, and all of them in one notation, in brackets or as words.
func (g *Guess) addList(text string) {
	words := !strings.HasPrefix(strings.TrimLeft(text, " \t"), "[")
	if g.notList = words && !plainNumbers(text) || g.isList && words != g.words; g.notList {
		return
	}
	g.words = words
	l := numberList{rest: text, each: g.addSize}
	dims, b, err := l.numbers(g.scratch[:0], tensor.Int64)
	if err != nil {
		l = numberList{rest: text, each: g.addSize}
		dims, b, err = l.numbers(g.scratch[:0], tensor.Float64)
		g.floats = true
	}
	g.scratch = b
	if dims == nil { // a list of one, without brackets
		dims = []int{1}
	}
	empty := len(dims) > 1 && slices.Contains(dims[1:], 0)
	if g.notList = err != nil || empty || len(dims) >= tensor.MaxRank; g.notList {
		return
	}
	if !g.isList {
		g.isList, g.dims = true, dims
		return
	}
	g.addDims(dims)
}

// addDims takes the lengths of one more list into account, after the first list.
func (g *Guess) addDims(dims []int) {
	switch {
	case len(dims) == 1 && dims[0] == 0: // an empty list has rows of any shape
		g.listsDiffer = g.listsDiffer || !slices.Equal(dims, g.dims)
	case len(g.dims) == 1 && g.dims[0] == 0:
		g.dims, g.listsDiffer = dims, true
	case len(dims) != len(g.dims) || !slices.Equal(dims[1:], g.dims[1:]):
		g.notList = true
	case dims[0] != g.dims[0]:
		g.listsDiffer = true
	}
}

// plainNumbers reports whether text looks like numbers with blanks between them. A number with a zero before its digits
// is a part of a name, a date or a telephone number.
func plainNumbers(text string) bool {
	words := strings.FieldsFunc(text, isBlank)
	for _, w := range words {
		digits := strings.TrimLeft(w, "+-")
		if len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' || digits == "" ||
			!strings.Contains("0123456789.", digits[:1]) {
			return false
		}
	}
	return len(words) > 0
}

// labelNames are columns whose words are taken for classes.
var labelNames = []string{"label", "labels", "class", "classes", "category", "target", "y"}

// LabelName reports whether the words in a column of that name are taken for classes.
func LabelName(name string) bool {
	return slices.Contains(labelNames, strings.ToLower(LastPart(name)))
}

// Result returns the type of a column of that name: the narrowest type that no cell has ruled out.
func (g *Guess) Result(column string) Type {
	switch {
	case !g.seen:
		return Type{Kind: Text}
	case !g.notBool && !LabelName(column):
		return Type{DType: tensor.Bool}
	case !g.notInt:
		return Type{DType: tensor.Int64}
	case !g.notWhole && !g.notUint:
		return Type{DType: tensor.Uint64}
	case !g.notWhole, g.Inexact(): // identifiers
		return Type{Kind: Text}
	case !g.notFloat:
		return Type{DType: g.Float()}
	case !g.notImages && g.images:
		return Type{Kind: ImagePaths}
	case !g.notList && (!g.words || g.listsDiffer || g.dims[0] > 1):
		return g.list()
	case !g.notImage:
		return Type{Kind: ImagePath}
	case LabelName(column):
		return Type{Kind: label, DType: tensor.Int64}
	}
	return Type{Kind: Text}
}

// list returns the type of a column of lists. Lists of several lengths make a ragged field, and so do empty ones: their
// rows have the shape that the longer lists show.
func (g *Guess) list() Type {
	t := Type{DType: tensor.Int64, Shape: g.dims}
	if g.floats {
		t.DType = g.Float()
	}
	if g.listsDiffer || g.dims[0] == 0 {
		t.Ragged, t.Shape = true, g.dims[1:]
	}
	return t
}

// LastPart returns the part after the last dot.
func LastPart(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

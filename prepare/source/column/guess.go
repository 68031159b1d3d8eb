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

// Cell is the text of one value in a table.
type Cell struct {
	Text   string
	Quoted bool // the format marks it as text, so it is no number
}

// Missing reports whether the cell is empty. An empty text in quotes is a value.
func (c Cell) Missing() bool { return c.Text == "" && !c.Quoted }

// absent are the words that mean a missing value in a column of numbers, a subset of the words of pandas. NaN is
// not among them: it is a float.
var absent = []string{"NA", "N/A", "n/a", "<NA>", "#N/A", "#NA", "NULL", "null", "None"}

// isAbsent reports whether a word is in absent. Length and first byte rule out nearly all words.
func isAbsent(word string) bool {
	return len(word) >= 2 && len(word) <= 4 && strings.IndexByte("Nn<#", word[0]) >= 0 && slices.Contains(absent, word)
}

// blanks are the characters that may surround a number.
const blanks = " \t\r\n"

// Trimmed returns text without blanks around it. Most cells have no blanks, which two comparisons find out.
func Trimmed(text string) string {
	if n := len(text); n > 0 && text[0] > ' ' && text[n-1] > ' ' {
		return text
	}
	return strings.Trim(text, blanks)
}

// Guess finds the type of a column from all its cells. The zero value has seen no cell. Fields that begin with not
// are types that some cell has ruled out; they only ever become true.
type Guess struct {
	seen                         bool // some cell is not missing
	numbers                      bool // some cell is a number
	notInt, notFloat, notImage   bool
	notWhole, notUint            bool // not integers of any size; not integers of uint64
	notBool                      bool
	notImages, images            bool // not image names and JSON arrays of them; some array is not empty
	notList, isList, listsDiffer bool
	floats                       bool // some list has numbers other than integers
	// wide: a number is not safe in float32, because it is above 2^24, where float32 does not hold all integers,
	// or below the smallest normal number.
	wide    bool
	inexact bool  // some integer is not exact in float64
	words   bool  // lists are words with blanks between, not in brackets
	dims    []int // shape of the first list that is not empty
	scratch []byte
}

// Add adds a cell. Columns of plain numbers and known texts take short ways, as a table can have billions of cells.
func (g *Guess) Add(c Cell) {
	if c.Missing() {
		return
	}
	if word := Trimmed(c.Text); !c.Quoted && (word == "" || isAbsent(word)) {
		return
	}
	g.seen = true
	named := source.IsImageName(c.Text)
	g.notImage = g.notImage || !named
	g.addImages(c, named)
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

// KnowsText reports whether Add would change nothing for a cell: the column is known to be texts or class names,
// and the cell cannot be a number. It is the fast path of long columns and looks at one byte.
func (g *Guess) KnowsText(c Cell) bool {
	if !(g.seen && g.notInt && g.notFloat && g.notImage && g.notImages && g.notWhole && g.notUint && g.notBool && g.notList) {
		return false
	}
	return g.numbers || c.Quoted || c.Text == "" || c.Text[0] > '9' || c.Text[0] > ' ' && c.Text[0] < '+'
}

// addSize notes which float types do not hold a number.
func (g *Guess) addSize(word string) {
	const exact = 15 // digits that every float64 holds
	if g.wide && (g.inexact || len(word) <= exact) {
		return
	}
	if x, err := parseFloat(word, 64); err == nil {
		g.addFloat(word, x)
	}
}

// addFloat is addSize for a number whose float64 is known.
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

// plainKind is the class of a cell by its characters.
type plainKind uint8

const (
	notPlain      plainKind = iota
	plainWhole              // an integer that fits in int64
	plainFraction           // digits with a point or an exponent, in the range of float64
)

// Limits within which a cell is classified by its length alone. Longer cells are parsed. A fraction of at most
// mostFraction characters without an exponent is 0 or at least 1e-22, which float32 holds.
const (
	sureWhole    = 7  // characters before the point of numbers below 2^24, whose size needs no check
	mostWhole    = 18 // digits that always fit in int64
	mostFraction = 25 // length of a float64 with all its digits: -0.00012345678901234567
)

// plain returns the class of a cell, and the number of characters before its point. For a number with an exponent
// it returns a large number, so that the caller checks the size. A number with leading zeros is not plain: it is a
// name such as 007.
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

// isExponent reports whether text is an exponent of at most two digits, which is always in the range of float64.
func isExponent(text string) bool {
	if text != "" && (text[0] == '-' || text[0] == '+') {
		text = text[1:]
	}
	return (len(text) == 1 || len(text) == 2) && isDigits(text)
}

// Merge adds the cells of o, which come after the cells of g. The shape of a list field is the shape of the first
// list, so the order matters there.
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

// Numbers reports whether some cell is a number.
func (g *Guess) Numbers() bool { return g.numbers }

// Words reports whether some cell is no number.
func (g *Guess) Words() bool { return g.notFloat }

// Inexact reports whether a column has both integers and other numbers, and float64 cannot hold some of the
// integers. Such integers are identifiers, and a conversion to floats would make some of them equal.
func (g *Guess) Inexact() bool {
	return g.inexact && g.notWhole && !g.notFloat || g.inexact && !g.notList && g.isList && g.floats
}

// Float returns float32 if it holds all numbers, otherwise float64.
func (g *Guess) Float() tensor.DType {
	if g.wide {
		return tensor.Float64
	}
	return tensor.Float32
}

// isBool reports whether a word is a spelling of true or false.
func isBool(text string) bool {
	return slices.Contains([]string{"true", "True", "TRUE", "false", "False", "FALSE"}, text)
}

// addImages checks whether a cell is a JSON array of image names, or is itself such a name (named), which is an array of one
// in a column that has arrays.
func (g *Guess) addImages(c Cell, named bool) {
	if g.notImages {
		return
	}
	if c.Quoted || c.Text[0] != '[' {
		g.notImages = !named
		return
	}
	list, err := pathList([]byte(c.Text))
	named = !slices.ContainsFunc(list, func(name string) bool { return !source.IsImageName(name) })
	g.notImages, g.images = err != nil || !named, g.images || len(list) > 0
}

// addWhole checks whether a cell is an integer, and whether it fits in int64 and uint64. A column with a larger
// integer becomes text: it is an identifier, and no float has all its digits.
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

// addList considers a cell as a list of numbers. Integers are tried first, as integers above 2^53 would change as
// floats. A column is lists only if all its cells are, in one notation: brackets or words.
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

// addDims compares the shape of a list with the shape of the first list.
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

// plainNumbers reports whether text is numbers with blanks between. A word with a leading zero is part of a name, a
// date or a telephone number.
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

// labelNames are the names of columns whose words become classes.
var labelNames = []string{"label", "labels", "class", "classes", "category", "target", "y"}

// LabelName reports whether the words in a column with this name become classes. Only the last part of a dotted
// name counts.
func LabelName(name string) bool {
	return slices.Contains(labelNames, strings.ToLower(LastPart(name)))
}

// Result returns the type of the column: the narrowest type that no cell has ruled out.
//
// The order of the tests is the order of types from narrow to wide: booleans, int64, uint64, floats, lists of
// images, lists of numbers, paths of images, classes, text. In a column with the name of a label, true and false
// are classes.
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
	case !g.notImages && (g.images || g.notImage && g.notList): // names beside empty arrays are no numbers
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

// list returns the type of a column of lists. Lists of different lengths make a ragged field, and so do empty
// lists, whose row shape is known from the longer ones.
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

// LastPart returns the part of a name after its last dot.
func LastPart(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

package expr_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/combine"
	"github.com/penstock/penstock/loader/expr"
	"github.com/penstock/penstock/tensor"
)

// records returns a Source of six records with fields of most kinds.
func records(t *testing.T) loader.Source {
	t.Helper()
	nan := math.NaN()
	src, err := combine.NewArrays(
		combine.Array{Name: "label", Values: tensor.From([]int64{0, 1, 2, 1, 0, -1}), Classes: []string{"cat", "dog", "cow"}},
		combine.Array{Name: "score", Values: tensor.From([]float32{0.1, 0.5, float32(nan), 0.9, -1, 16777216})},
		combine.Array{Name: "big", Values: tensor.From([]int64{math.MaxInt64, math.MinInt64, 9007199254740993, 0, 5, -7})},
		combine.Array{Name: "huge", Values: tensor.From([]uint64{math.MaxUint64, 1 << 63, 3, 4, 5, 6})},
		combine.Array{Name: "box", Values: tensor.From([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24}, 4)},
		combine.Array{Name: "tokens", Values: tensor.From([]int32{1, 2, 3, 4, 5, 6}), Offsets: []int64{0, 0, 1, 3, 3, 5, 6}},
		combine.Array{Name: "boxes", Values: tensor.From([]float32{0, 0, 9, 9, 1, 1, 2, 2, 3, 3, 5, 5}, 4), Offsets: []int64{0, 1, 1, 3, 3, 3, 3}},
		combine.Array{Name: "kinds", Values: tensor.From([]int64{0, 1, 2}), Offsets: []int64{0, 1, 1, 3, 3, 3, 3}, Classes: []string{"car", "van", "bus"}},
		combine.Array{Name: "caption", Values: tensor.From([]uint8("a catdogäöüA.b")), Offsets: []int64{0, 5, 8, 14, 14, 17, 17}, Content: tensor.Text},
		combine.Array{Name: "ok", Values: boolean(1, 0, 1, 0, 1, 0)},
	)
	require.NoError(t, err)
	return src
}

func boolean(values ...byte) tensor.View {
	return tensor.Of(tensor.Spec{Name: "b", DType: tensor.Bool}, len(values), values)
}

func TestFind(t *testing.T) {
	src := records(t)
	for text, want := range map[string]string{
		"label = 'cat'":                                  "[0 4]",
		"label == 1":                                     "[1 3]",
		"label != 'cat'":                                 "[1 2 3 5]",
		"label in ('cat', 'cow')":                        "[0 2 4]",
		"label not in (0, 1)":                            "[2 5]",
		"label in (1, 'cat', -1)":                        "[0 1 3 4 5]",
		"label = ''":                                     "[5]",
		"'d' < label":                                    "[1 3]",
		"starts_with(label, 'c')":                        "[0 2 4]",
		"true":                                           "[0 1 2 3 4 5]",
		"not true":                                       "[]",
		"ok":                                             "[0 2 4]",
		"ok = false":                                     "[1 3 5]",
		"score = 0.1":                                    "[0]",
		"score != score":                                 "[2]",
		"is_nan(score)":                                  "[2]",
		"not score < 0.9":                                "[2 3 5]",
		"score < 0.9 or score >= 0.9":                    "[0 1 3 4 5]",
		"score = 16777217":                               "[]",
		"score between 0.1 and 0.5":                      "[0 1]",
		"score not between 0.1 and 0.5":                  "[2 3 4 5]",
		"score in (0.5, 0.9)":                            "[1 3]",
		"big = 9007199254740992.0":                       "[]",
		"big > 9007199254740992.0":                       "[0 2]",
		"big < 9223372036854775808":                      "[0 1 2 3 4 5]",
		"big >= -9223372036854775808":                    "[0 1 2 3 4 5]",
		"big = -9223372036854775808":                     "[1]",
		"big < 1e300 and big > -1e300":                   "[0 1 2 3 4 5]",
		"huge > 9223372036854775807":                     "[0 1]",
		"huge = 18446744073709551615":                    "[0]",
		"huge >= 9223372036854775808.0":                  "[0 1]",
		"huge > big":                                     "[0 1 3 5]",
		"huge in (3, 4.0, 5.5, -1)":                      "[2 3]",
		"big between -10 and 10 and big + 1 > 0":         "[3 4]",
		"big / 0 > 0":                                    "[0 2 4]",
		"label * 2 - 1 = 1":                              "[1 3]",
		"-label = -2":                                    "[2]",
		"box[0] > 9":                                     "[3 4 5]",
		"box[-1] = 4":                                    "[0]",
		"box[2] - box[0] = 2":                            "[0 1 2 3 4 5]",
		"max(box) < 9 or min(box) = 21":                  "[0 1 5]",
		"mean(box) = 6.5":                                "[1]",
		"any(box = 12)":                                  "[2]",
		"all(box > 4)":                                   "[1 2 3 4 5]",
		"len(box) = 4":                                   "[0 1 2 3 4 5]",
		"len(tokens) > 1":                                "[2 4]",
		"is_empty(tokens)":                               "[0 3]",
		"len(tokens) > 0 and tokens[0] = 2":              "[2]",
		"len(tokens) > 0 and tokens[-1] >= 5":            "[4 5]",
		"any(tokens in (3, 6))":                          "[2 5]",
		"all(tokens > 3)":                                "[0 3 4 5]",
		"any(boxes[:, 2] - boxes[:, 0] > 1.5)":           "[0 2]",
		"len(boxes) > 0 and boxes[0, 3] = 2":             "[2]",
		"len(boxes) > 1 and max(boxes[1]) = 5":           "[2]",
		"len(boxes[:, :]) = 8":                           "[2]",
		"any(kinds = 'bus' and boxes[:, 0] > 2)":         "[2]",
		"any(kinds in ('car', 'van'))":                   "[0 2]",
		"not is_empty(tokens) and min(tokens) / 2 = 0.5": "[1]",
		"len(caption) = 3":                               "[1 2 4]",
		"is_empty(caption)":                              "[3 5]",
		"contains(caption, 'cat')":                       "[0]",
		"caption = 'dog'":                                "[1]",
		"caption in ('dog', 'äöü')":                      "[1 2]",
		"matches(caption, '^[a-z]+$')":                   "[1]",
		"matches(caption, '(?i)^a')":                     "[0 4]",
		"ends_with(caption, \".b\")":                     "[4]",
		"caption < 'b'":                                  "[0 3 4 5]",
		"caption = label":                                "[1 5]",
		"`label` = 'it''s' or label = 'dog'":             "! column 11: there is no class \"it's\"; known are cat, dog, cow",
		"label = label":                                  "[0 1 2 3 4 5]",
		"((label)) > 0 AND NOT ok":                       "[1 3]",
		"sample(1)":                                      "[0 1 2 3 4 5]",
		"ok = 1":                                         "[0 2 4]",
		"ok < 0.5":                                       "[1 3 5]",
		"ok in (1, 2) and score != true":                 "[0 2 4]",
		"score in (true, nan, 0.1)":                      "[0 2]",
		"score in (1, true, 0.5)":                        "[1]",
		"label = true":                                   "[1 3]",
		"score < inf and -inf < score":                   "[0 1 3 4 5]",
		"score = nan":                                    "[]",
		"huge < 99999999999999999999":                    "[0 1 2 3 4 5]",
		"huge = 18446744073709551616":                    "[]",
		"-2 ** 2 = -4 and score ** 2 = 1":                "[4]",
		"2 ** -1 ** 2 = 0.5":                             "[0 1 2 3 4 5]",
		"any(box ** 0.5 = 3)":                            "[2]",
		"abs(label) = 1":                                 "[1 3 5]",
		"all(abs(box - 6) <= 2.5)":                       "[1]",
		"sqrt(score) = 4096":                             "[5]",
		"exp(log(big)) > 4 and maximum(big, 7) = 7":      "[4]",
		"clip(label, 0, 1) = 1":                          "[1 2 3]",
		"minimum(big, 3) = 3.0":                          "[0 2 4]",
		"log1p(score) = -inf":                            "[4]",
		"sample(0.0, 3)":                                 "[]",
	} {
		got, err := found(t.Context(), src, text)
		if strings.HasPrefix(want, "!") {
			if got = err.Error(); !strings.Contains(got, want[2:]) {
				t.Errorf("%s: %s, want %s", text, got, want)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
}

func found(ctx context.Context, src loader.Source, text string) (string, error) {
	set, err := expr.Find(ctx, src, text)
	if err != nil {
		return "", err
	}
	list := slices.AppendSeq([]int{}, set.All())
	if len(list) != set.Count() {
		return "", fmt.Errorf("%d records, and a count of %d", len(list), set.Count())
	}
	return fmt.Sprint(list), nil
}

// TestRefused has each error name the place, and what to write.
func TestRefused(t *testing.T) {
	src := records(t)
	for text, want := range map[string]string{
		"":                                      "column 1: the expression is empty",
		"lable = 'cat'":                         "column 1: there is no field \"lable\"; did you mean \"label\"?\n  lable = 'cat'\n  ^",
		"ok and\nlabel = 'cta'":                 "column 16: there is no class \"cta\"; did you mean \"cat\"?\n  label = 'cta'\n          ^",
		"caption = 'ä' and labl = 1":            "column 19: there is no field \"labl\"",
		"label = ":                              "column 9: a value was expected, not the end",
		"label = 'cat":                          "column 9: the ' that opens a text here is not closed",
		"label = 1 && ok":                       `"&&" is not an operator; write and`,
		"label <> 1":                            `"<>" is not an operator; write !=`,
		"1 < label < 3":                         "write a < b and b < c",
		"label = 1 label":                       "the end, or and, or or was expected, not label",
		"label":                                 "a label is not a condition",
		"score":                                 "a number is not a condition; compare it, as in x > 0",
		"caption":                               "a text is not a condition",
		"not score":                             "column 5: a number is not a condition",
		"box > 3":                               "column 5: this is a list of values a record; write any(...) or all(...)",
		"box[4] > 3":                            "column 5: index 4 of an axis with 4 elements",
		"box[0, 1] > 3":                         "box has one axis, and 2 indices",
		"score[0] > 3":                          "score is one value a record; leave the indices out",
		"boxes[0][1] = 1":                       "indices are in one pair of brackets: boxes[1, 2]",
		"box['a'] = 1":                          "a whole number, or :, was expected, not 'a'",
		"score = 'cat'":                         "a number and a text cannot be compared",
		"ok = 'x'":                              "true or false and a text cannot be compared; write x, not x, or x = true",
		"a.b = 1":                               "column 2: '.' cannot stand here; names with such characters are written `in backticks`",
		"where(ok, 1, 2) = 1":                   "where is for derived fields; write a and",
		"abs(big) > 0":                          "record 1: 0 - -9223372036854775808 overflows",
		"score" + strings.Repeat(" + 1", 70000): "more than 65536 operators one after the other",
		"ok < true":                             "true and false have no order",
		"ok + 1 = 2":                            "true or false is not a number, which + needs",
		"label in (1, score)":                   "column 14: a list after in has numbers and strings",
		"big in (1, 'cat')":                     "column 12: a whole number and a text cannot be compared",
		"label in (1, 'cta')":                   "there is no class \"cta\"; did you mean",
		"label in 1":                            "a list such as (1, 2) was expected, not 1",
		"lenn(tokens) > 1":                      "there is no function \"lenn\"; did you mean len?",
		"len() > 1":                             "len takes 1 argument, not 0: write len(field)",
		"len(score) > 1":                        "a number has no length",
		"is_empty(score)":                       "every record has a value of score",
		"is_nan(caption)":                       "a text is not a number",
		"contains(score, 'a')":                  "a number is not a text, which contains needs",
		"contains(caption, label)":              "the second argument of contains is a text in quotes",
		"matches(caption, '(')":                 "column 18: error parsing regexp",
		"max(score) > 1":                        "max is over the values of a record, and this is one; leave max out",
		"any(score > 1)":                        "any is over the values of a record, and this is one",
		"sample(2)":                             "the first argument of sample is a number from 0 to 1",
		"sample(0.5, 'a')":                      "a whole number, the seed",
		"1e999 > score":                         "1e999 is too large for 64 bits",
		"0x10 = label":                          "0x10 is not a number",
		"label = #":                             "'#' cannot stand here",
		"big + 1 > 0":                           "column 5: record 0: 9223372036854775807 + 1 overflows 64 bits; make one of them a float: 1.0 * x",
		"-big < 0":                              "record 1: 0 - -9223372036854775808 overflows",
		"2 * huge > 0":                          "record 0: 2 * 18446744073709551615 overflows",
		"tokens[0] = 1":                         "column 1: record 0: index 0 of 0 rows of tokens; write len(tokens) > 0 and ... before it",
		"tokens[-2] = 1":                        "record 0: index -2 of 0 rows of tokens; write len(tokens) > 1 and",
		"min(tokens) = 1":                       "record 0: min of no values",
		"any(kinds = 1 and tokens = 1)":         "record 0: there are 1 values on the left, and 0 on the right",
		"9223372036854775807 + 1 > label":       "column 21: 9223372036854775807 + 1 overflows",
		strings.Repeat("(", 300):                "nested deeper than 200",
	} {
		_, err := found(t.Context(), src, text)
		if err == nil || !strings.HasPrefix(err.Error(), "filter: column ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestSample has samples of one seed contain each other, and those by a value have all records of it.
func TestSample(t *testing.T) {
	const n = 40000
	groups := make([]int32, n)
	for i := range groups {
		groups[i] = int32(i / 10)
	}
	src, err := combine.NewArrays(combine.Array{Name: "group", Values: tensor.From(groups)})
	require.NoError(t, err)
	sets := make(map[string]*expr.Set)
	for _, text := range []string{"sample(0.1)", "sample(0.3)", "sample(0.3, 1)", "sample(0.3, 1, group)"} {
		if sets[text], err = expr.Find(t.Context(), src, text); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]float64{"sample(0.1)": 0.1, "sample(0.3)": 0.3, "sample(0.3, 1)": 0.3, "sample(0.3, 1, group)": 0.3} {
		if got := float64(sets[text].Count()) / n; math.Abs(got-want) > 0.03 {
			t.Errorf("%s has %v of the records", text, got)
		}
	}
	for i := range n {
		if sets["sample(0.1)"].Has(i) && !sets["sample(0.3)"].Has(i) {
			t.Fatalf("record %d is in a tenth, and not in three tenths", i)
		}
		if sets["sample(0.3, 1, group)"].Has(i) != sets["sample(0.3, 1, group)"].Has(i/10*10) {
			t.Fatalf("record %d is not where the others of its group are", i)
		}
	}
	if slices.Equal(sets["sample(0.3)"].Words(), sets["sample(0.3, 1)"].Words()) {
		t.Error("two seeds choose the same records")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("label = 'cat' and not (len(boxes) > 0 or box[0, :] in (1, 2.5)) and x not between -1 and `y z`")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := expr.Parse(text); err != nil && err.Error() == "" {
			t.Error("an error without a text")
		}
	})
}

// bounded is a Source that knows the limits of each block, and counts those that are read.
type bounded struct {
	*combine.Arrays
	values []int64
	read   atomic.Int64
}

func (b *bounded) Bounds(_ string, first, end int) (low, high float64, ok bool) {
	some := b.values[first:end]
	return float64(some[0]), float64(some[len(some)-1]), first/8192%5 != 3 // some are not known
}

func (b *bounded) Slice(field string, first, end int) (tensor.View, error) {
	b.read.Add(1)
	return b.Arrays.Slice(field, first, end)
}

// TestBounds has a filter find the same records where the Source knows limits, and read fewer.
func TestBounds(t *testing.T) {
	values := make([]int64, 200_000)
	for i := range values {
		values[i] = int64(i / 20_000 * 10)
	}
	src, err := combine.NewArrays(combine.Array{Name: "x", Values: tensor.From(values)})
	require.NoError(t, err)
	for _, text := range []string{
		"x = 30", "x != 30", "x < 30", "x <= 29.5", "30 >= x", "30.5 < x", "x between 20 and 40", "x in (10, 70)", "x not in (10, 70.0)",
		"not x > 50", "x = 1e300", "x > -1e300 and x != 18446744073709551615", "x / 10 = 3 or x = 30", "x in ()",
	} {
		want, err := found(t.Context(), src, text)
		require.NoError(t, err)
		b := &bounded{Arrays: src, values: values}
		got, err := found(t.Context(), b, text)
		if err != nil || got != want {
			t.Errorf("%s: other records with limits than without: %v", text, err)
		}
		if n := b.read.Load(); n > 13 && !strings.Contains(text, "/") {
			t.Errorf("%s: %d blocks of 25 were read", text, n)
		}
	}
}

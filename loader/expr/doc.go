// Package expr has the language of expressions: a [Filter] finds the records of a Source for which an expression is
// true, and a [Formula] computes a field from other fields.
//
//	cats, err := expr.Find(ctx, ds, "label = 'cat' and len(boxes) > 0 and not is_nan(score)")
//	...
//	view, err := combine.NewSelect(ds, combine.Select{Set: cats})
//
// The language is the same here, in Python (Dataset.filter), on the command line (inspect filter) and in .view.json
// files; docs/views.md describes it for users. From loosest to tightest:
//
//	or    and    not    = != < <= > >= in, not in, between    + -    * /    - (sign)    **    field[0]
//
// A name is a field, or a function if a parenthesis follows; `in backticks` a name may be any string.
// Strings are in single or double quotes; a quote within one is doubled. A label with classes is a number, and its
// class name if it is compared with a string: label = 'cat'. Strings are ordered by their bytes.
//
//	len(x) is_empty(x)                                  rows of a record, characters of a string
//	starts_with(x, 'a') ends_with(x, 'a') contains(x, 'a') matches(x, 'a.*')   matches: RE2, anywhere in the string
//	is_nan(x)
//	abs(x) sqrt(x) exp(x) log(x) log1p(x) minimum(x, y) maximum(x, y) clip(x, low, high)   as in NumPy
//	min(x) max(x) mean(x) any(x) all(x)                 over the values of a record
//	sample(0.1) sample(0.1, seed) sample(0.1, seed, x)  a tenth of the records, or of the values of x
//
// Logic has two values. Comparisons with NaN are false, but for !=, as in IEEE 754. An integer and a float compare
// exactly. A fraction such as 0.1 that meets a field of a smaller type of floats is rounded to that type first. What is
// true or false meets a number as 1 or 0. In a list after "in", nan is equal to NaN, as in pandas' isin.
// Integers are computed in 64 bits, where an overflow is an error, floats in float64; / and ** are of floats.
//
// A Formula has the same syntax. It computes all in one type of floats, over arrays that are broadcast as in NumPy.
package expr

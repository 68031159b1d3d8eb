package store

// Moments summarizes numbers as they are stored (0 to 255 for uint8). A statistic that is too large for a float64, such
// as the deviation of values beyond 1e154, is the largest float64: JSON has no infinity.
type Moments struct {
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
	Mean float64 `json:"mean"`
	Std  float64 `json:"std"` // standard deviation of the population: divided by n
	// NonFinite counts NaNs and infinities, which the other statistics leave out.
	NonFinite int64 `json:"non_finite,omitempty"`
}

// Statistics summarizes a field.
type Statistics struct {
	Moments
	Channels []Moments `json:"channels,omitempty"`     // for a field with more than one channel
	Lengths  *Moments  `json:"lengths,omitempty"`      // for a ragged field: rows of a record
	Labels   []int64   `json:"label_counts,omitempty"` // for a field with Classes: number of values of each class
}

// Package message splits object headers into messages, and parses those that say how a dataset is stored.
package message

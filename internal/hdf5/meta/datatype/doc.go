// Package datatype parses the types of elements and the shapes of dataspaces.
package datatype

// Package archtest holds what the packages of the module may import. It has tests only.
package archtest

// Package graph is the engine: it runs a compiled graph of nodes over typed state, one node at a time, and ends in one
// of three outcomes: completed, suspended or errored.
//
// The semantics are OpenArmature's (graph-engine, sessions, suspension); the surface is Go's. Fields are typed keys
// that carry their reducer. A node is a function from state to changes; it suspends by returning Suspend(…) as its
// error, the way a reader returns io.EOF. What must survive is written through two small interfaces, SessionStore and
// Checkpointer; a store that is both and can commit both at once makes the end of a turn atomic.
//
// The package knows no chat, no platform and no database.
package graph

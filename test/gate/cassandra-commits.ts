import '../adapters/cassandra-evidence.test.js';
// Last, because this file puts the clock of its process forward.
import '../adapters/cassandra-decisions.test.js';

import '../adapters/cassandra-events.test.js';

import '../lab/simulation/simulation.test.js';
import '../lab/simulation/differential.test.js';

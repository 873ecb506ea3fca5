import '../lab/simulation/many-histories.test.js';

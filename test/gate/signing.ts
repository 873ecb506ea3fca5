import '../credential/offline-authority.test.js';
import '../credential/signing.test.js';
import '../operations/certificate-validity.test.js';

// Loaded before each test file and each process that tests start: scrypt takes a 256th of its time, since a hash takes a quarter of a
// second of a core and tests make thousands. TEST_REAL_HASHES=1 gives it its whole cost; such a process cannot check the others' hashes.
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

const whole = crypto.scrypt
crypto.scrypt = (password, salt, length, options, done) => {
  const N = process.env.TEST_REAL_HASHES === '1' ? options.N : Math.max(2, (options.N ?? 2 ** 14) / 256)
  whole(password, salt, length, { ...options, N }, done)
}
syncBuiltinESMExports()

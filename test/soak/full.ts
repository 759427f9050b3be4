// The tests that take only a part of their work in `npm test`, at full length. `npm run soak`.
process.env.TEST_FULL = '1'
await import('../integration/users.test.ts')
await import('../integration/database.test.ts')
await import('../integration/cli-first-start.test.ts')

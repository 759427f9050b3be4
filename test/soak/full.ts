// The tests that take only a part of their work in `npm test` and `npm run test:system`, at full length. `npm run soak`.
process.env.TEST_FULL = '1'
await import('../integration/users.test.ts')
await import('../integration/database.test.ts')
await import('../integration/kill.test.ts')
await import('../integration/cli.test.ts')
await import('../integration/pglite.test.ts')
await import('../integration/guesses.test.ts')
await import('../system/descriptions.test.ts')

// 100 rounds of kill -9 under continuous writes, and the rest of the hub's tests with them.
process.env.KILL_ROUNDS ??= '100'
await import('../system/hub.test.ts')

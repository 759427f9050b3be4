// A PostgreSQL with a migrated template, for a run of the tests. Prints where it is as a line of JSON; ends with its standard input.
import { once } from 'node:events'
import { Cluster, makeTemplate } from '../helpers/database.ts'

const cluster = await Cluster.create({ max_connections: '400' })
const TEST_DB_TEMPLATE = await makeTemplate(cluster)
console.log(JSON.stringify({ TEST_DB_URL: cluster.url(), TEST_DB_TEMPLATE }))
await once(process.stdin.resume(), 'end')
await cluster.remove()
process.exit()

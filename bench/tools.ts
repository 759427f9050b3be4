import { Connection } from './connection.ts'
import { waitFor } from './processes.ts'
import { toolList } from './jobs.ts'
import { Session, resultOf, type Endpoint } from './session.ts'
import type { Listening } from './upstreams.ts'

/** Repeats `tools/list` in one session until it has `count` tools. Returns the time since the server was spawned, in ms. */
export async function waitUntilListed ({ running }: Listening, endpoint: Endpoint, count: number): Promise<number> {
  const { request, isCorrect } = toolList(count)
  const connection = await Connection.open(endpoint.port)
  try {
    const session = await Session.open(connection, endpoint)
    let id = 0
    const listed = await waitFor(async () => isCorrect(resultOf(await connection.send(session.encode(request(++id))), id), id), running)
    await session.end(connection)
    return listed
  } finally {
    connection.close()
  }
}

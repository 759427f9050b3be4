import { Connection } from './connection.ts'
import { waitFor } from './processes.ts'
import { toolList } from './jobs.ts'
import { Session, resultOf, type Endpoint } from './session.ts'
import type { Listening } from './upstreams.ts'

/** Asks `tools/list` over one session until so many tools are there; answers how many ms that was after the server was spawned. */
export async function untilListed ({ running }: Listening, endpoint: Endpoint, count: number): Promise<number> {
  const { request, right } = toolList(count)
  const connection = await Connection.open(endpoint.port)
  try {
    const session = await Session.open(connection, endpoint)
    let id = 0
    const listed = await waitFor(async () => right(resultOf(await connection.send(session.encode(request(++id))), id), id), running)
    await session.end(connection)
    return listed
  } finally {
    connection.close()
  }
}

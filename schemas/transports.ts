/** The properties of a server type, which are known without a connection. */
interface TransportTraits {
  /** Whether only admins may store servers of the type, unless ALLOW_USER_STDIO is set. */
  readonly isRestricted: boolean
  /**
   * How the config states where the server is: with `command`, with `url`, or with a description of an HTTP API
   * (`openapi`).
   */
  readonly locatedBy: 'command' | 'address' | 'description'
  /** Whether each request has its own stream and its own headers, so that closing the stream cancels the request. */
  readonly hasStreams: boolean
  /** Whether the server keeps state for a connection, so that clients may need separate connections. */
  readonly hasSession: boolean
  /** Whether servers of the type may support MCP 2026-07-28 in addition to earlier revisions. */
  readonly isDualEra: boolean
  /** The spellings of the type in configs of other programs: lower case, letters only. */
  readonly spellings: readonly string[]
}

const transportTable = {
  stdio: {
    isRestricted: true,
    locatedBy: 'command',
    hasStreams: false,
    hasSession: true,
    isDualEra: true,
    spellings: ['stdio', 'local']
  },
  sse: {
    isRestricted: false,
    locatedBy: 'address',
    hasStreams: false,
    hasSession: true,
    isDualEra: false,
    spellings: ['sse']
  },
  'streamable-http': {
    isRestricted: false,
    locatedBy: 'address',
    hasStreams: true,
    hasSession: true,
    isDualEra: true,
    spellings: ['streamablehttp', 'http']
  },
  openapi: {
    isRestricted: true,
    locatedBy: 'description',
    hasStreams: true,
    hasSession: false,
    isDualEra: false,
    spellings: ['openapi']
  }
} as const satisfies Readonly<Record<string, TransportTraits>>

export type TransportType = keyof typeof transportTable

/** The properties of the transports to servers, by server type. Connections are implemented in `plugins/upstream`. */
export const transports: Readonly<Record<TransportType, TransportTraits>> = transportTable
export const transportTypes = Object.keys(transportTable) as TransportType[]

/** Whether only admins may store servers of a type, unless ALLOW_USER_STDIO is set. An unknown type is restricted. */
export const isRestrictedType = (type: string): boolean =>
  !Object.hasOwn(transports, type) || transports[type as TransportType].isRestricted

/** Returns the type that a spelling in another program's config stands for; undefined if there is none. */
export function parseTransportType (text: string): TransportType | undefined {
  const spelling = text.toLowerCase().replace(/[-_ ]/g, '')
  return transportTypes.find((type) => transports[type].spellings.includes(spelling))
}

/** A tool, prompt or resource of an MCP route, as in a list result of MCP. */
export interface RouteItem {
  readonly name?: string
  readonly uri?: string
  readonly description?: string
  readonly inputSchema?: unknown
  readonly arguments?: ReadonlyArray<{
    readonly name: string, readonly description?: string, readonly required?: boolean
  }>
}

/** How the playground shows and runs the items of one kind. */
interface Kind {
  /** The MCP method that runs an item, such as `tools/call`. */
  readonly method: string
  readonly title: string
  readonly noun: string
  /** The label of the button that runs an item. */
  readonly run: string
  /** Returns the name or URI that identifies an item in a request. */
  readonly keyOf: (item: RouteItem) => string
  /** Returns the JSON Schema of the arguments. */
  readonly schemaOf: (item: RouteItem) => unknown
  /** Returns the members of the method's `params`, each as JSON text. @param args the arguments as JSON text */
  readonly paramsOf: (key: string, args: string) => readonly string[]
}

const nameAndArguments = (key: string, args: string): string[] =>
  [`"name":${JSON.stringify(key)}`, `"arguments":${args}`]
const nameOf = ({ name = '' }: RouteItem): string => name

/** The kinds of items of an MCP route, by the member of the MCP list result that contains the items. */
export const routeItemKinds = {
  tools: {
    method: 'tools/call',
    title: 'Tools',
    noun: 'tool',
    run: 'Call',
    keyOf: nameOf,
    schemaOf: ({ inputSchema }) => inputSchema,
    paramsOf: nameAndArguments
  },
  prompts: {
    method: 'prompts/get',
    title: 'Prompts',
    noun: 'prompt',
    run: 'Get',
    keyOf: nameOf,
    schemaOf: ({ arguments: args = [] }) => ({
      properties: Object.fromEntries(args.map(({ name, description }) => [name, { type: 'string', description }])),
      required: args.filter(({ required }) => required === true).map(({ name }) => name)
    }),
    paramsOf: nameAndArguments
  },
  resources: {
    method: 'resources/read',
    title: 'Resources',
    noun: 'resource',
    run: 'Read',
    keyOf: ({ uri = '' }) => uri,
    schemaOf: () => ({}),
    paramsOf: (key) => [`"uri":${JSON.stringify(key)}`]
  }
} as const satisfies Readonly<Record<string, Kind>>

export type RouteItemKind = keyof typeof routeItemKinds
export const routeItemKindNames = Object.keys(routeItemKinds) as RouteItemKind[]

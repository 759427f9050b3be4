/** A tool to be searched. An unchanged tool must stay the same object, since indexes share its words by object. */
export interface SearchableTool {
  /** The name on the route, for example `github-create_issue`. */
  readonly name: string
  /** The server's own name of the tool, for example `create_issue`. */
  readonly ownName: string
  readonly server: string
  readonly title?: string
  /** The description with overrides applied. */
  readonly description?: string
  /** A tool that differs at most by `name`, whose words this one shares; default: itself. */
  readonly content?: SearchableTool
  /** The parsed JSON Schema. */
  readonly inputSchema?: unknown
}

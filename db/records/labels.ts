// The labels that more than one collection has.
export const clientLabel = (clientId: string): string => `client:${clientId}`
export const userLabel = (username: string): string => `user:${username}`

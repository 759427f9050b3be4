DROP INDEX "activities_tool";--> statement-breakpoint
CREATE INDEX "activities_tool" ON "activities" USING btree ("tool","timestamp","id","server");
"""From samples to the table, the JSON file and the chart."""
